// A user at a client of the official TypeScript SDK. Its argument has the fields of `settings`
// in client_test.go, its input commands, one a line, and its output a line for each, which are
// `command` and `reply` there. Steps are what happened on the way: requests of the SDK with
// the status of their answers, and pages that the user filled in. Tokens stay in here.
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const settings = JSON.parse(process.argv[1]);
const redirectUrl = 'http://127.0.0.1/callback';

let steps = [];
let challenges = [];

// What the SDK asks of the application around it: to keep things, and to open a page.
const application = {
  redirectUrl,
  clientMetadata: {
    client_name: 'e2e',
    redirect_uris: [redirectUrl],
    token_endpoint_auth_method: 'none',
    response_types: ['code'],
    grant_types: settings.refresh ? ['authorization_code', 'refresh_token'] : ['authorization_code'],
  },
  state() { return this.expected = randomUUID(); },
  clientInformation() { return this.client; },
  saveClientInformation(client) { this.client = client; },
  tokens() { return this.issued; },
  saveTokens(issued) { this.issued = issued; },
  codeVerifier() { return this.verifier; },
  saveCodeVerifier(verifier) { this.verifier = verifier; },
  discoveryState() { return this.discovered; },
  saveDiscoveryState(discovered) { this.discovered = discovered; },
  redirectToAuthorization(url) { this.page = url; },
};
if (settings.resource) application.validateResourceURL = async () => new URL(settings.resource);

const cookies = new Map();

// logIn follows the pages from url on until they lead back to the application, and returns
// what they say to it.
const logIn = async (url) => {
  let form;
  while (!String(url).startsWith(redirectUrl)) {
    const response = await fetch(url, {
      method: form ? 'POST' : 'GET', body: form, redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      cookies.set(name, value);
    }
    const html = await response.text();
    form = undefined;
    if (response.headers.has('location')) {
      url = new URL(response.headers.get('location'), url);
      continue;
    }
    const prompt = html.match(/name="prompt" value="(\w+)"/)?.[1];
    if (!prompt) throw new Error(`a page that asks nothing, status ${response.status}`);
    steps.push(`${prompt} ${settings.user}`);
    url = new URL(html.match(/<form [^>]*action="([^"]+)"/)[1], url);
    form = new URLSearchParams({ prompt, login: settings.user, password: 'any' });
  }
  const answer = new URL(url).searchParams;
  if (answer.get('state') !== application.expected) throw new Error('an answer to another login');
  return answer;
};

const recorded = async (url, init) => {
  const response = await fetch(url, init);
  const grant = init?.body instanceof URLSearchParams ? ` ${init.body.get('grant_type')}` : '';
  steps.push(`${init?.method ?? 'GET'} ${url}${grant} ${response.status}`);
  if (response.headers.has('www-authenticate')) challenges.push(response.headers.get('www-authenticate'));
  return response;
};

let client;
let transport;

const connect = async () => {
  client = new Client({ name: 'e2e', version: '1.0.0' }, {
    versionNegotiation: { mode: settings.negotiates ? 'auto' : { pin: '2026-07-28' } },
    capabilities: { elicitation: { form: {} } },
  });
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: settings.user } }));
  transport = new StreamableHTTPClientTransport(new URL(settings.endpoint), { authProvider: application, fetch: recorded });
  await client.connect(transport);
  return {};
};

// authorized makes a request, and once more if the user had to log in for it.
const authorized = async (request) => {
  try {
    return await request();
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e;
    await transport.finishAuth(await logIn(application.page));
    return request();
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  const { call, manual } = JSON.parse(line);
  const reply = {};
  try {
    reply.result = await authorized(call ? () => client.callTool(call, { allowInputRequired: manual }) : connect);
  } catch (e) {
    reply.error = { name: e.name, message: e.message, code: `${e.code ?? ''}`, reason: `${e.data?.reason ?? ''}` };
  }
  if (application.issued) {
    reply.key = JSON.parse(Buffer.from(application.issued.access_token.split('.')[0], 'base64url')).kid;
  }
  console.log(`reply ${JSON.stringify({ ...reply, steps, challenges })}`);
  [steps, challenges] = [[], []];
}
