// Visits the server at the URL given and prints, as JSON, what it found: the fields of
// `report` in report_test.go.
'use strict';
const path = require('path');
const { createRequire } = require('module');
const { Client, StreamableHTTPClientTransport } = createRequire(path.join(process.cwd(), 'package.json'))('@modelcontextprotocol/client');

const text = (content) => {
  if (content.length !== 1 || content[0].type !== 'text') throw new Error(`want one text: ${JSON.stringify(content)}`);
  return content[0].text;
};

// codeOf is the JSON-RPC code that a request fails with.
const codeOf = async (request) => {
  try {
    await request;
  } catch (e) {
    if (typeof e.code !== 'number') throw e;
    return e.code;
  }
  throw new Error('the request did not fail');
};

// What the user and the model say to what they read.
const answers = {
  'What is your name?': { name: 'Zoë' },
  'Step 1: What is your name?': { name: 'Zoë' },
  'Step 2: What is your favorite color?': { color: 'green' },
  'What context should the prompt use?': { context: '日本語' },
  'What is the capital of France?': 'Paris',
  'Generate a greeting': 'Good day',
};

async function main() {
  const client = new Client({ name: 'e2e-ts', version: '1.0.0' }, {
    versionNegotiation: { mode: { pin: '2026-07-28' } },
    capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  });
  const questions = [];
  const answerTo = (question) => {
    questions.push(question);
    if (!(question in answers)) throw new Error(`nobody understands ${question}`);
    return answers[question];
  };
  let declines = false;
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const content = answerTo(params.message);
    return declines ? { action: 'decline' } : { action: 'accept', content };
  });
  client.setRequestHandler('sampling/createMessage', ({ params }) => ({
    model: 'e2e', role: 'assistant', content: { type: 'text', text: answerTo(text(params.messages.map((m) => m.content))) },
  }));
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///a%20project' }] }));
  await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));

  const call = async (name, args, isError, options) => {
    const result = await client.callTool({ name, arguments: args }, options);
    if (Boolean(result.isError) !== isError) throw new Error(`${name}: isError is ${result.isError}`);
    return result;
  };
  const read = async (uri) => {
    const { contents } = await client.readResource({ uri });
    if (contents.length !== 1) throw new Error(`${uri}: ${contents.length} contents`);
    return contents[0];
  };

  const r = { version: client.getNegotiatedProtocolVersion(), server: client.getServerVersion().name };
  r.tools = (await client.listTools()).tools.map((t) => t.name);
  r.echo = text((await call('echo', { text: 'héllo   wörld' }, false)).content);
  r.toolError = text((await call('test_error_handling', {}, true)).content);
  r.invalid = text((await call('add', { a: 'one' }, true)).content);
  r.unknownTool = await codeOf(client.callTool({ name: 'no_such_tool', arguments: {} }));
  r.sum = (await call('add', { a: 2, b: 3 }, false)).structuredContent.sum;
  r.mirrored = [];
  for (const region of ['us-west1', '日本語', ' padded ']) {
    r.mirrored.push(text((await call('test_x_mcp_header', { region }, false)).content));
  }
  const progress = [];
  await call('test_tool_with_progress', {}, false, { onprogress: (p) => progress.push(p.progress) });
  r.progress = progress;

  r.prompts = (await client.listPrompts()).prompts.map((p) => p.name);
  const name = 'test_prompt_with_arguments';
  const { messages } = await client.getPrompt({ name, arguments: { arg1: 'a', arg2: 'b' } });
  r.prompt = text(messages.map((m) => m.content));
  r.completion = (await client.complete({ ref: { type: 'ref/prompt', name }, argument: { name: 'arg1', value: 'test' } })).completion.values;

  r.resources = (await client.listResources()).resources.map((x) => x.uri);
  r.templates = (await client.listResourceTemplates()).resourceTemplates.map((x) => x.uriTemplate);
  r.text = (await read('test://static-text')).text;
  r.blob = (await read('test://static-binary')).blob;
  r.template = (await read('test://template/4%202/data')).text;
  r.missing = await codeOf(client.readResource({ uri: 'test://no-such-resource' }));

  // The client itself answers and tries again.
  const ask = async (what, isError) => text((await call(`test_input_required_result_${what}`, {}, isError)).content);
  r.greeting = await ask('elicitation', false);
  declines = true;
  r.declined = await ask('elicitation', true);
  declines = false;
  r.likes = await ask('multi_round', false);
  r.capital = await ask('sampling', false);
  r.roots = await ask('list_roots', false);
  r.atOnce = await ask('multiple_inputs', false);
  r.askedPrompt = text((await client.getPrompt({ name: 'test_input_required_result_prompt' })).messages.map((m) => m.content));
  r.questions = questions;
  await client.close();
  process.stdout.write(JSON.stringify(r));
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
