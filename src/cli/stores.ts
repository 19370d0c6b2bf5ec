/** Stores that commands read from and write to, and the flags, variables and configuration of those in S3. */
import { resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import type { Http } from '../platform/http/http.ts';
import { loadRoots } from '../platform/http/roots.ts';
import { openStore } from '../store/open.ts';
import type { S3Options } from '../store/s3-address.ts';
import type { Store } from '../store/store.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { readConfig } from './config.ts';
import { NETWORK_OPTIONS } from './network.ts';

const group = 'Options of stores in S3';

/** Of every command that takes a store. */
export const STORE_OPTIONS = {
  's3-endpoint': {
    type: 'string',
    value: 'URL',
    help: 'server that is not AWS (default: $AWS_ENDPOINT_URL_S3)',
    group,
  },
  's3-region': { type: 'string', value: 'REGION', help: 'region of the bucket (default: $AWS_REGION)', group },
  's3-profile': {
    type: 'string',
    value: 'NAME',
    help: 'profile to take credentials from (default: $AWS_PROFILE)',
    group,
  },
  's3-path-style': {
    type: 'boolean',
    help: 'put the bucket into the path, not the host name (default: where there is an endpoint)',
    group,
  },
  'ca-file': NETWORK_OPTIONS['ca-file'],
  config: NETWORK_OPTIONS.config,
} satisfies OptionSpecs;

/**
 * Opens the store of an address. `create`: a folder is made when it is not there. `http`: a client for stores behind a web
 * server; without one they are not supported.
 */
export async function openStoreFor(
  address: string,
  args: Arguments,
  context: CommandContext,
  { create, http }: { readonly create: boolean; readonly http?: Http | undefined },
): Promise<Store> {
  const { cwd, report, signal } = context;
  const s3 = /^s3:/i.test(address) ? await s3Options(args, context) : undefined;
  return openStore(address, { cwd, create, s3, http, report, signal });
}

/** Flags go before variables, variables before the configuration. What is left open the SDK finds by itself. */
async function s3Options(args: Arguments, { env, cwd }: CommandContext): Promise<S3Options> {
  const { s3, caFile } = await readConfig(args.text('config'), { env, cwd });
  const variable = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const caFlag = args.text('ca-file');
  const roots = await loadRoots(caFlag === undefined ? caFile : resolve(cwd, caFlag), env);
  return {
    endpoint:
      args.text('s3-endpoint') ?? variable('AWS_ENDPOINT_URL_S3') ?? variable('AWS_ENDPOINT_URL') ?? s3.endpoint,
    region: args.text('s3-region') ?? variable('AWS_REGION') ?? variable('AWS_DEFAULT_REGION') ?? s3.region,
    profile: args.text('s3-profile') ?? variable('AWS_PROFILE') ?? s3.profile,
    pathStyle: args.flag('s3-path-style') ? true : (pathStyleOf(variable('CURLEW_S3_PATH_STYLE')) ?? s3.pathStyle),
    ca: roots,
    env,
  };
}

function pathStyleOf(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text === '1' || text === '0') return text === '1';
  throw new CurlewError('USAGE', 'CURLEW_S3_PATH_STYLE is neither 1 nor 0');
}
