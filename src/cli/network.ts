/** Flags, variables and configuration of everything that goes over the network, and the clients made of them. */
import { resolve } from 'node:path';
import { createHttp, type Http } from '../platform/http/http.ts';
import { createRegistryClient, type RegistryClient } from '../registry/client.ts';
import { createCredentials, readDockerConfig } from '../registry/credentials.ts';
import { parseMirror } from '../registry/endpoint.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { readConfig, type Config } from './config.ts';

const group = 'Network options';

export const NETWORK_OPTIONS = {
  'registry-mirror': {
    type: 'string',
    multiple: true,
    value: 'HOST=MIRROR',
    help: 'ask MIRROR (host:port[/project]) before registry HOST; may be repeated',
    group,
  },
  'allow-http': {
    type: 'string',
    multiple: true,
    value: 'HOST',
    help: 'ask this host over plain http; may be repeated',
    group,
  },
  'trust-realm': {
    type: 'string',
    multiple: true,
    value: 'HOST',
    help: "send this host a registry's credentials when it asks; may be repeated",
    group,
  },
  'ca-file': { type: 'string', value: 'FILE', help: 'certificate authorities to trust as well, in PEM', group },
  config: {
    type: 'string',
    value: 'FILE',
    help: 'configuration file (default: ~/.config/curlew/config.json)',
    group,
  },
} satisfies OptionSpecs;

/** Of commands that fetch, but talk to no registry. */
export const WEB_OPTIONS = {
  'allow-http': NETWORK_OPTIONS['allow-http'],
  'ca-file': NETWORK_OPTIONS['ca-file'],
  config: NETWORK_OPTIONS.config,
} satisfies OptionSpecs;

export interface Network extends AsyncDisposable {
  readonly http: Http;
  readonly registry: RegistryClient;
  readonly config: Config;
  /** Of the flag, else of the configuration; absolute. */
  readonly caFile: string | undefined;
}

/** `docker.io=host:port` flags, then the configuration's mirrors, by registry host. */
function mirrorsOf(flags: readonly string[], config: Config): ReadonlyMap<string, readonly string[]> {
  const mirrors = new Map<string, readonly string[]>();
  for (const [host, mirror] of [...flags.map(parseMirror), ...config.registryMirrors]) {
    mirrors.set(host, [...(mirrors.get(host) ?? []), mirror]);
  }
  return mirrors;
}

/** The client for addresses, as flags, configuration and environment want it, in this order of weight. */
export async function openHttp(
  args: Arguments,
  { env, cwd }: CommandContext,
): Promise<Pick<Network, 'http' | 'config' | 'caFile'>> {
  const config = await readConfig(args.text('config'), { env, cwd });
  const caFlag = args.text('ca-file');
  const caFile = caFlag === undefined ? config.caFile : resolve(cwd, caFlag);
  const allowHttp = [...args.texts('allow-http'), ...config.allowHttp];
  return { http: await createHttp({ env, caFile, allowHttp }), config, caFile };
}

/** That client, and one for registries. */
export async function openNetwork(args: Arguments, context: CommandContext): Promise<Network> {
  const { env } = context;
  const { http, config, caFile } = await openHttp(args, context);
  const registry = createRegistryClient({
    http,
    credentials: createCredentials(await readDockerConfig(env), env),
    mirrors: mirrorsOf(args.texts('registry-mirror'), config),
    trustRealms: [...args.texts('trust-realm'), ...config.trustRealms],
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
