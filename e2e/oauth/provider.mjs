// An authorization server on loopback, whose access tokens live for as many seconds as its
// argument says. Anybody logs in with a name, every client may register, and a token is for
// the resource that it was asked for. It prints its issuer. POST /rotate gives it a new key to
// sign with; the older ones stay in its key set.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const lifetime = Number(process.argv[1]);

const newKey = () => ({
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
  kid: randomUUID(), use: 'sig', alg: 'RS256',
});

let issuer;
let keys = [];
let handle;
const cookieKeys = [randomUUID()];

// Who is logged in, what was granted and which clients there are outlive a rotation: the
// library keeps them for the process.
const rotate = () => {
  keys = [newKey(), ...keys];
  handle = new Provider(issuer, {
    jwks: { keys },
    cookies: { keys: cookieKeys },
    // A client registers with the scopes of its first login. Kept, they would be all that it
    // can ever ask for.
    extraClientMetadata: { properties: ['scope_is_no_limit'], validator: (_context, _name, _value, client) => { delete client.scope; } },
    features: {
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          audience: resource, scope: 'files:read files:write', accessTokenFormat: 'jwt', accessTokenTTL: lifetime,
        }),
      },
    },
  }).callback();
};

const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/rotate') {
    rotate();
    response.writeHead(204).end();
    return;
  }
  handle(request, response);
});
server.listen(0, '127.0.0.1', () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  rotate();
  console.log(`issuer ${issuer}`);
});
