import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const { endpoint, user, mode, refresh, resource } = JSON.parse(process.argv[1]);

class Browser {
  cookies = new Map();
  prompts = [];
  async visit(url, redirectUrl) {
    let form;
    for (;;) {
      if (String(url).startsWith(redirectUrl)) return new URL(url).searchParams;
      const response = await fetch(url, {
        redirect: 'manual', method: form ? 'POST' : 'GET', body: form,
        headers: { cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      });
      for (const line of response.headers.getSetCookie()) {
        const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
        this.cookies.set(name, value);
      }
      const page = await response.text();
      form = undefined;
      const location = response.headers.get('location');
      if (location) { url = new URL(location, url); continue; }
      const action = page.match(/<form [^>]*action="([^"]+)"/)?.[1];
      const prompt = page.match(/name="prompt" value="([^"]+)"/)?.[1];
      if (!action) throw new Error(`no form: ${response.status} ${url} ${page.replace(/<style>[^]*<\/style>/,'')}`);
      this.prompts.push(prompt);
      url = new URL(action, url);
      form = new URLSearchParams({ prompt, login: user, password: 'any' });
    }
  }
}
const browser = new Browser();
const host = {
  redirectUrl: 'http://127.0.0.1/callback',
  clientMetadata: {
    client_name: 'e2e', redirect_uris: ['http://127.0.0.1/callback'], token_endpoint_auth_method: 'none',
    grant_types: refresh ? ['authorization_code', 'refresh_token'] : ['authorization_code'], response_types: ['code'],
  },
  clientInformation() { return this.client; },
  saveClientInformation(v) { this.client = v; },
  tokens() { return this.issued; },
  saveTokens(v) { this.issued = v; },
  codeVerifier() { return this.verifier; },
  saveCodeVerifier(v) { this.verifier = v; },
  discoveryState() { return this.discovered; },
  saveDiscoveryState(v) { this.discovered = v; },
  redirectToAuthorization(url) { this.pending = url; console.error('AUTH', String(url)); },
};
if (resource) host.validateResourceURL = async () => new URL(resource);
const record = async (url, init) => {
  const response = await fetch(url, init);
  console.error(init?.method ?? 'GET', String(url), init?.body ? String(init.body).slice(0, 300) : '', JSON.stringify(Object.fromEntries(new Headers(init?.headers))).replace(/Bearer [^"]*/, 'Bearer X'));
  console.error('   ', response.status, response.headers.get('www-authenticate') ?? '', (await response.clone().text()).slice(0, 600));
  return response;
};
let client, transport;
const open = async () => {
  client = new Client({ name: 'e2e', version: '1' }, { versionNegotiation: { mode: mode === 'auto' ? 'auto' : { pin: mode } }, capabilities: { elicitation: { form: {} } } });
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Zoë' } }));
  transport = new StreamableHTTPClientTransport(new URL(endpoint), { authProvider: host, fetch: record });
  await client.connect(transport);
};
const authorized = async (request) => {
  try { return await request(); } catch (e) {
    if (!(e instanceof UnauthorizedError) || !host.pending) throw e;
    const url = host.pending; host.pending = undefined;
    await transport.finishAuth(await browser.visit(url, host.redirectUrl));
    return request();
  }
};
await authorized(open);
for await (const line of createInterface({ input: process.stdin })) {
  const { params, options } = JSON.parse(line);
  try { console.log(JSON.stringify({ result: await authorized(() => client.callTool(params, options)), prompts: browser.prompts })); }
  catch (e) { console.log(JSON.stringify({ error: { name: e.name, message: e.message, code: e.code, data: e.data } })); }
}
