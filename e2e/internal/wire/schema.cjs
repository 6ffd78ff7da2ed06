// Prints the JSON Schema of MCP 2026-07-28, which the official conformance suite carries
// as an object literal in its bundle. Of the schemas it carries, only this revision's
// defines DiscoverResult.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const bundle = path.join(process.cwd(), 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const text = fs.readFileSync(bundle, 'utf8');
const start = '{$schema:`https://json-schema.org/draft/2020-12/schema`,$defs:{Annotations:';

// literal is the text of the object that begins at `from`, braces in strings not counted.
function literal(from) {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    const c = text[i];
    if (c === '`' || c === '"' || c === "'") {
      for (i++; text[i] !== c; i++) if (text[i] === '\\') i++;
    } else if (c === '{') {
      depth++;
    } else if (c === '}' && --depth === 0) {
      return text.slice(from, i + 1);
    }
  }
  throw new Error('the object has no end');
}

const found = [];
for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + 1)) {
  const schema = vm.runInNewContext('(' + literal(at) + ')');
  if (schema.$defs.DiscoverResult) found.push(schema);
}
if (found.length !== 1) throw new Error(`found ${found.length} schemas of the revision in ${bundle}, want one`);
process.stdout.write(JSON.stringify(found[0]));
