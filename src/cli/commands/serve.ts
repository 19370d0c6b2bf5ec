/** `curlew serve`: serves a store over HTTP: packages, bundles, online installs, images. */
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { KEY_OPTIONS, SETTINGS_OPTION, STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { formatBytes } from '../render/units.ts';
import { choice, wholeNumber } from '../values.ts';

const serve = useCase(async () => (await import('../../app/serve.ts')).serve);

const group = 'Limits';
const logFormat = choice('json', 'text', 'none');

/** `127.0.0.1:8080`, `[::1]:8080`, or `:8080` for all addresses of this machine. */
function listenAddress(text: string, option: string): { readonly host: string | undefined; readonly port: number } {
  const [, host, port] = /^(\[[0-9A-Fa-f:.%\w]+\]|[^:\s/]*):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || port === undefined || Number(port) > 65_535) {
    throw new CurlewError('USAGE', `${option} ${text}: not an address with a port, such as 127.0.0.1:8080`);
  }
  return { host: host === '' ? undefined : host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
}

function numberOrNone(text: string, option: string): number {
  return text === '0' ? 0 : wholeNumber(text, option);
}

const DETAILS = `Bundles are generated on request and not stored: the packages determine their size and every byte. Interrupted downloads can be resumed, even after the server restarts.

ID is the output of curlew installer id for a spec, or NAME of a spec NAME.yaml. Add specs as files, or with --allow-post: curl -H "Authorization: Bearer $TOKEN" --data-binary @installer.yaml URL/installer.

On SIGTERM or SIGINT the server stops accepting connections, and exits when running responses have finished.`;

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
      required: 'add --store with the store to serve',
      value: 'STORE',
      help: 'folder, s3://bucket/prefix, or a web server with a store',
    },
    listen: {
      type: 'string',
      read: listenAddress,
      value: 'HOST:PORT',
      help: 'address and port (default: 127.0.0.1:8080)',
    },
    installers: {
      type: 'string',
      value: 'STORE',
      help: 'store with installer specs ID.yaml (default: installers/ in the store)',
    },
    redirect: {
      type: 'string',
      value: 'URL',
      help: "redirect requests for packages to a web server with the store's objects",
    },
    'public-url': {
      type: 'string',
      value: 'URL',
      help: 'address of this server for clients (default: their Host header)',
    },
    'allow-post': { type: 'boolean', help: 'accept installer specs from clients with the token' },
    ...SETTINGS_OPTION,
    'token-file': { type: 'string', value: 'FILE', help: 'file with the token (default: $CURLEW_SERVE_TOKEN)' },
    'tls-cert': { type: 'string', value: 'FILE', help: 'certificate with chain, in PEM: serve HTTPS' },
    'tls-key': { type: 'string', value: 'FILE', help: 'its private key, in PEM' },
    log: {
      type: 'string',
      read: logFormat,
      value: 'json|text|none',
      help: 'format of the request log on standard output (default: json)',
    },
    'max-connections': {
      type: 'string',
      read: wholeNumber,
      value: 'N',
      help: 'maximum number of connections (default: 1000)',
      group,
    },
    'idle-timeout': {
      type: 'string',
      read: wholeNumber,
      value: 'SECONDS',
      help: 'close a connection after this time without a byte (default: 120)',
      group,
    },
    grace: {
      type: 'string',
      read: numberOrNone,
      value: 'SECONDS',
      help: 'time for running responses at shutdown (default: 60)',
      group,
    },
    ...STORE_OPTIONS,
    ...KEY_OPTIONS,
    ...WEB_OPTIONS,
  },
  run: async ({ options }, context) => serve(options, context),
  render: ({ requests, bytes }) => `${counted(requests, 'request')}, ${formatBytes(bytes)}`,
});
