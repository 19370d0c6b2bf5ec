/** Network clients, from options, environment and configuration. */
import { resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { createHttp, type Http } from '../../platform/http/http.ts';
import type { RetryPolicy } from '../../platform/http/retry.ts';
import { createRegistryClient, type RegistryClient } from '../../build/registry/client.ts';
import { createCredentials, readDockerConfig } from '../../build/registry/credentials.ts';
import { parseMirror } from '../../build/registry/endpoint.ts';
import type { Context } from '../../core/context.ts';
import { readConfig, type Config } from './config.ts';
import type { WebRequest, NetworkRequest } from '../../requests/connection.ts';

export interface Network extends AsyncDisposable {
  readonly http: Http;
  readonly registry: RegistryClient;
  readonly config: Config;
  /** From the option or the configuration; absolute. */
  readonly caFile: string | undefined;
}

/** `docker.io=host:port` options, then the configuration's mirrors, by registry host. */
function mirrorsOf(flags: readonly string[], config: Config): ReadonlyMap<string, readonly string[]> {
  const mirrors = new Map<string, readonly string[]>();
  for (const [host, mirror] of [...flags.map(parseMirror), ...config.registryMirrors]) {
    mirrors.set(host, [...(mirrors.get(host) ?? []), mirror]);
  }
  return mirrors;
}

/** The name of an image from an option or the configuration, without tag and digest. */
function imageName(text: string): string {
  const ref = parseImageRef(text);
  if (typeof ref !== 'string') return formatImageRef({ ...ref, tag: undefined, digest: undefined });
  throw new CurlewError('USAGE', `--any-platform ${text.slice(0, 200)}: ${ref}`);
}

/** The certificates that options and the configuration trust, in this order of precedence. */
export async function webTrust(
  request: WebRequest,
  { env, cwd }: Pick<Context, 'env' | 'cwd'>,
): Promise<Pick<Network, 'config' | 'caFile'> & { readonly allowHttp: readonly string[] }> {
  const config = await readConfig(request.config, { env, cwd });
  const caFile = request.caFile === undefined ? config.caFile : resolve(cwd, request.caFile);
  return { config, caFile, allowHttp: [...(request.allowHttp ?? []), ...config.allowHttp] };
}

/** The HTTP client, from options, configuration and environment, in this order of precedence. */
async function openHttp(
  request: WebRequest,
  context: Context,
  retry?: RetryPolicy,
): Promise<Pick<Network, 'http' | 'config' | 'caFile'>> {
  const { config, caFile, allowHttp } = await webTrust(request, context);
  return { http: await createHttp({ env: context.env, caFile, allowHttp, retry }), config, caFile };
}

/** An HTTP client and a client for registries. */
export async function openNetwork(request: NetworkRequest, context: Context): Promise<Network> {
  const { env } = context;
  const { http, config, caFile } = await openHttp(request, context);
  const registry = createRegistryClient({
    http,
    credentials: createCredentials(await readDockerConfig(env), env),
    mirrors: mirrorsOf(request.registryMirror ?? [], config),
    trustRealms: [...(request.trustRealm ?? []), ...config.trustRealms],
    anyPlatform: [...(request.anyPlatform ?? []), ...config.anyPlatform].map(imageName),
  });
  return {
    http,
    registry,
    config,
    caFile,
    [Symbol.asyncDispose]: async () => {
      await http.close();
    },
  };
}

/** Creates the network client only for runs that need it. */
export function lazyHttp(request: WebRequest, context: Context, retry?: RetryPolicy) {
  let opened: Promise<{ readonly http: Http }> | undefined;
  const close = async (): Promise<void> => {
    await (await opened)?.http.close();
  };
  return {
    get: async (): Promise<Http> => (await (opened ??= openHttp(request, context, retry))).http,
    close,
    [Symbol.asyncDispose]: close,
  };
}
