// An authorization server on loopback, whose access tokens live as many seconds as the
// argument says. It prints its issuer. Anybody logs in by name, every client may register,
// and a token is for the resource that it was asked for. POST /rotate changes its keys.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const lifetime = Number(process.argv[1]);

const resourceServer = (resource) => ({
  scope: 'files:read files:write',
  audience: resource,
  accessTokenFormat: 'jwt',
  accessTokenTTL: lifetime,
});

const newKey = () => ({
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
  kid: randomUUID(), use: 'sig', alg: 'RS256',
});

// The first key signs. What was issued and who is logged in outlive a change of keys.
let keys = [newKey()];
const cookieKeys = [randomUUID()];
const provide = (issuer) => new Provider(issuer, {
  jwks: { keys },
  cookies: { keys: cookieKeys },
  // The client registers with the scopes of its first login. Kept, they would be all that it
  // may ever ask for.
  extraClientMetadata: { properties: ['any'], validator: (_, key, value, metadata) => { delete metadata.scope; } },
  features: {
    registration: { enabled: true },
    resourceIndicators: { enabled: true, getResourceServerInfo: (_, resource) => resourceServer(resource) },
  },
}).callback();

let serve;
const server = createServer((request, response) => {
  if (request.method !== 'POST' || request.url !== '/rotate') {
    serve(request, response);
    return;
  }
  keys = [newKey(), ...keys];
  serve = provide(issuer);
  response.writeHead(204).end();
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
serve = provide(issuer);
console.log(`issuer ${issuer}`);
