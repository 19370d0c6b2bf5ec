/** The request of a server. */
import * as v from 'valibot';
import { choice, count, flag, numberOf, one, path, place, reading, text, type Kind } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { INVALID_SETTINGS } from './bundle.ts';
import { STORE, WEB } from './connection.ts';
import { KEY } from './trust.ts';

export interface Listen {
  /** Every address of this machine if absent. */
  readonly host?: string | undefined;
  readonly port: number;
}

/** `127.0.0.1:8080`, `[::1]:8080`, or `:8080` for all addresses of this machine. */
function listenAddress(text: string): Listen | undefined {
  const [, host, port] = /^(\[[0-9A-Fa-f:.%\w]+\]|[^:\s/]*):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || port === undefined || Number(port) > 65_535) return undefined;
  return { host: host === '' ? undefined : host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
}

const LISTEN: Kind<Listen> = {
  schema: v.object({
    host: v.optional(v.string()),
    port: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65_535)),
  }),
  read: reading(listenAddress, 'not an address with a port, such as 127.0.0.1:8080'),
};
const limits = { group: 'Limits' } as const;

export const SERVE = request('serve', {
  store: place('STORE', 'folder, s3://bucket/prefix, or a web server with a store', {
    required: 'add --store with the store to serve',
  }),
  listen: one(LISTEN)('HOST:PORT', 'address and port (default: 127.0.0.1:8080)'),
  installers: place('STORE', 'store with installer specs ID.yaml (default: installers/ in the store)'),
  redirect: text('URL', "redirect requests for packages to a web server with the store's objects"),
  publicUrl: text('URL', 'address of this server for clients (default: their Host header)'),
  allowPost: flag('accept installer specs from clients with the token'),
  ...INVALID_SETTINGS,
  tokenFile: path('FILE', 'file with the token (default: $CURLEW_SERVE_TOKEN)'),
  tlsCert: path('FILE', 'certificate with chain, in PEM: serve HTTPS'),
  tlsKey: path('FILE', 'its private key, in PEM'),
  log: choice(['json', 'text', 'none'], 'format of the request log on standard output (default: json)'),
  maxConnections: count('N', 'maximum number of connections (default: 1000)', limits),
  idleTimeout: count('SECONDS', 'close a connection after this time without a byte (default: 120)', limits),
  grace: one(numberOf(0, 999_999, 'not a number from 0'))(
    'SECONDS',
    'time for running responses at shutdown (default: 60)',
    limits,
  ),
  ...STORE,
  ...KEY,
  ...WEB,
});
export type ServeRequest = RequestOf<typeof SERVE.fields>;
