/** `curlew serve`: a store over HTTP: packages, bundles that are made as they are read, online installs, images. */
import { serve } from '../../app/serve.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { command } from '../command.ts';
import { KEY_OPTIONS, SETTINGS_OPTION, STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { formatBytes } from '../render/units.ts';
import { choice, wholeNumber } from '../values.ts';

const group = 'Limits';
const logForm = choice('json', 'text', 'none');

/** `127.0.0.1:8080`, `[::1]:8080`, `:8080` for every address of this machine. */
function listenAddress(text: string, option: string): { readonly host: string | undefined; readonly port: number } {
  const [, host, port] = /^(\[[0-9A-Fa-f:.%\w]+\]|[^:\s/]*):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || port === undefined || Number(port) > 65_535) {
    throw new CurlewError('USAGE', `${option} ${text}: an address and a port are needed, as in 127.0.0.1:8080`);
  }
  return { host: host === '' ? undefined : host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
}

function numberOrNone(text: string, option: string): number {
  return text === '0' ? 0 : wholeNumber(text, option);
}

const DETAILS = `A bundle is not made before it is asked for, and lies nowhere: its length and every byte are known from the packages. Interrupted downloads go on where they stopped, also after this server was started again.

ID is what curlew installer id prints of a spec, or the name of a file NAME.yaml among the specs. Specs come there by hand, or with --allow-post: curl -H "Authorization: Bearer $TOKEN" --data-binary @installer.yaml URL/installer.

On SIGTERM or SIGINT it takes no more connections, and ends when the running answers have left.`;

export const serveCommand = command({
  name: 'serve',
  operands: '',
  details: DETAILS,
  examples: [
    'curlew serve --store /srv/dist',
    'curlew serve --store s3://bucket/dist --redirect https://cdn.example/dist',
    'curlew serve --store /srv/dist --tls-cert site.crt --tls-key site.key',
    'curlew serve --store /srv/dist --allow-post --token-file token',
    'curlew serve --store s3://bucket/dist --key release.pub',
  ],
  options: {
    store: {
      type: 'string',
      required: 'say with --store what to serve',
      value: 'STORE',
      help: 'folder, s3://bucket/prefix, or the web server in front of one',
    },
    listen: {
      type: 'string',
      read: listenAddress,
      value: 'HOST:PORT',
      help: 'where to listen (default: 127.0.0.1:8080)',
    },
    installers: {
      type: 'string',
      value: 'STORE',
      help: 'where the installer specs are, as ID.yaml (default: installers/ in the store)',
    },
    redirect: {
      type: 'string',
      value: 'URL',
      help: 'send clients here for packages: a web server in front of the store',
    },
    'public-url': { type: 'string', value: 'URL', help: 'what clients call this server (default: what they say)' },
    'allow-post': { type: 'boolean', help: 'let whoever has the token put installer specs here' },
    ...SETTINGS_OPTION,
    'token-file': { type: 'string', value: 'FILE', help: 'holds that token (default: $CURLEW_SERVE_TOKEN)' },
    'tls-cert': { type: 'string', value: 'FILE', help: 'certificate and its chain, in PEM: speak https' },
    'tls-key': { type: 'string', value: 'FILE', help: 'its private key, in PEM' },
    log: {
      type: 'string',
      read: logForm,
      value: 'json|text|none',
      help: 'a line for each request on standard output (default: json)',
    },
    'max-connections': {
      type: 'string',
      read: wholeNumber,
      value: 'N',
      help: 'more are refused (default: 1000)',
      group,
    },
    'idle-timeout': {
      type: 'string',
      read: wholeNumber,
      value: 'SECONDS',
      help: 'a connection without a byte for so long is cut (default: 120)',
      group,
    },
    grace: {
      type: 'string',
      read: numberOrNone,
      value: 'SECONDS',
      help: 'how long running answers are waited for when it is to end (default: 60)',
      group,
    },
    ...STORE_OPTIONS,
    ...KEY_OPTIONS,
    ...WEB_OPTIONS,
  },
  run: async ({ options }, context) => serve(options, context),
  render: ({ requests, bytes }) => `${counted(requests, 'request')}, ${formatBytes(bytes)}`,
});
