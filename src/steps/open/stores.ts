/** Opens stores, with the options, environment and configuration of those in S3. */
import { join, posix, resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { readStateFile } from '../../platform/files/state-file.ts';
import { loadRoots } from '../../platform/http/roots.ts';
import { readAwsProfile, type AwsProfile } from '../../ship/store/aws-profile.ts';
import { openStore, type OpenStoreOptions } from '../../ship/store/open.ts';
import type { S3Options } from '../../ship/store/s3-address.ts';
import type { FetchPlace } from '../../ship/store/places.ts';
import type { Store } from '../../ship/store/store.ts';
import { isWebAddress, webObject } from '../../ship/store/web.ts';
import type { Context } from '../../core/context.ts';
import { homeFolder, readConfig } from './config.ts';
import type { lazyHttp } from './network.ts';
import type { AddressRequest, StoreRequest } from '../../requests/connection.ts';

const MAX_PROFILE_BYTES = 1 << 20;

/**
 * Opens the store of an address. `create`: what becomes of a missing folder. `http`: a client for stores behind a web server, which are
 * not supported without one. `attempts`: per request of a store in S3; undefined for the default.
 */
export async function openStoreFor(
  address: string,
  request: StoreRequest,
  context: Context,
  {
    create,
    http,
    attempts,
  }: {
    readonly create: OpenStoreOptions['create'];
    readonly http?: OpenStoreOptions['http'];
    readonly attempts?: number | undefined;
  },
): Promise<Store> {
  const { cwd, report, signal } = context;
  const s3 = /^s3:/i.test(address) ? { ...(await s3Options(request, context)), attempts } : undefined;
  return openStore(address, { cwd, create, s3, http, report, signal });
}

/** Opens the store of an address for a dry run; undefined if it does not exist yet. */
export async function findStoreFor(
  address: string,
  request: StoreRequest,
  context: Context,
): Promise<Store | undefined> {
  return openStoreFor(address, request, context, { create: false }).catch((error: unknown) => {
    if (error instanceof CurlewError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
}

/** Options override variables, which override the configuration, and that the profile. The SDK determines the rest. */
async function s3Options(request: StoreRequest, { env, cwd }: Context): Promise<S3Options> {
  const { s3, caFile } = await readConfig(request.config, { env, cwd });
  const variable = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const caFlag = request.caFile;
  const roots = await loadRoots(caFlag === undefined ? caFile : resolve(cwd, caFlag), env);
  const profile = request.s3Profile ?? variable('AWS_PROFILE') ?? s3.profile;
  const own = await profileOf(profile, env);
  const endpoint = request.s3Endpoint ?? variable('AWS_ENDPOINT_URL_S3') ?? variable('AWS_ENDPOINT_URL');
  return {
    endpoint: endpoint ?? s3.endpoint ?? own.endpoint,
    region: request.s3Region ?? variable('AWS_REGION') ?? variable('AWS_DEFAULT_REGION') ?? s3.region ?? own.region,
    profile,
    pathStyle: request.s3PathStyle === true ? true : (pathStyleOf(variable('CURLEW_S3_PATH_STYLE')) ?? s3.pathStyle),
    ca: roots,
    env,
  };
}

async function profileOf(profile: string | undefined, env: Context['env']): Promise<AwsProfile> {
  const path = env['AWS_CONFIG_FILE'] ?? join(homeFolder(env), '.aws/config');
  const settings = readAwsProfile((await readStateFile(path, MAX_PROFILE_BYTES)) ?? '', profile);
  return env['AWS_IGNORE_CONFIGURED_ENDPOINT_URLS'] === 'true' ? { ...settings, endpoint: undefined } : settings;
}

function pathStyleOf(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text === '1' || text === '0') return text === '1';
  throw new CurlewError('USAGE', 'CURLEW_S3_PATH_STYLE is neither 1 nor 0');
}

/** The address of one object: a URL, `s3://bucket/key`, or a file in a folder. */
export function objectOpener(request: AddressRequest, context: Context, web: ReturnType<typeof lazyHttp>) {
  return async (address: string): Promise<FetchPlace> => {
    if (isWebAddress(address)) return webObject(address, await web.get());
    const store = await openStoreFor(posix.dirname(address), request, context, { create: false });
    return { store, key: posix.basename(address) };
  };
}
