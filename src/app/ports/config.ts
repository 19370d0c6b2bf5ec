/** The configuration file: options that a site sets once. */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { asError, CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { isObject, isTexts } from '../../core/json.ts';
import { parseMirror } from '../../registry/endpoint.ts';
import type { OsId } from '../../core/os.ts';
import type { Repository } from '../../core/repositories.ts';
import type { S3Options } from '../../store/s3-address.ts';
import type { Context } from '../../core/context.ts';
import { byOs, readRepositories } from './config-repositories.ts';

export interface Config {
  /** Registry hosts with the mirrors that are tried before them, in order. */
  readonly registryMirrors: readonly (readonly [host: string, mirror: string])[];
  /** Hosts that may be contacted over plain http. */
  readonly allowHttp: readonly string[];
  /** Hosts that may be sent credentials as the realm of another registry. */
  readonly trustRealms: readonly string[];
  /** Images that are accepted without a platform. */
  readonly anyPlatform: readonly string[];
  /** Absolute; in the file it is relative to the file's folder. */
  readonly caFile: string | undefined;
  /** Builder images that replace those of the operating systems. */
  readonly builders: Readonly<Partial<Record<OsId, string>>>;
  /** Package repositories that replace those of the operating systems, for the host backend. */
  readonly repositories: Readonly<Partial<Record<OsId, readonly Repository[]>>>;
  /** Options for stores in S3. */
  readonly s3: S3Config;
  /** The engine's network for containers; default: the engine's default. */
  readonly containerNetwork: string | undefined;
  /** Public keys; bundles must be signed with one of them. Absolute; in the file they are relative to its folder. */
  readonly trustedKeys: readonly string[];
  /** Registry hosts, including subdomains, that image overrides of a spec may name in addition to the public ones. */
  readonly imageRegistries: readonly string[];
}

type S3Config = Omit<S3Options, 'ca'>;

const EMPTY: Config = {
  registryMirrors: [],
  allowHttp: [],
  trustRealms: [],
  anyPlatform: [],
  caFile: undefined,
  builders: {},
  repositories: {},
  s3: {},
  containerNetwork: undefined,
  trustedKeys: [],
  imageRegistries: [],
};
const KEYS: readonly string[] = Object.keys(EMPTY);

/** The folder of the user's settings or data, by the XDG base directory specification. */
export function xdgFolder(env: Context['env'], variable: string, fallback: string): string {
  const set = env[variable];
  return set !== undefined && set.startsWith('/') ? set : join(env['HOME'] ?? '/', fallback);
}

/** Reads the named file, or the user's own if it exists. An unknown key is an error: it would have no effect. */
export async function readConfig(
  path: string | undefined,
  { env, cwd }: Pick<Context, 'env' | 'cwd'>,
): Promise<Config> {
  const own = join(xdgFolder(env, 'XDG_CONFIG_HOME', '.config'), 'curlew', 'config.json');
  const file = path === undefined ? own : resolve(cwd, path);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (path === undefined && errnoOf(error) === 'ENOENT') return EMPTY;
    throw fileError(`read the configuration ${file}`, error);
  }
  return parseConfig(text, file);
}

function parseConfig(text: string, file: string): Config {
  const bad = (what: string): CurlewError =>
    new CurlewError('USAGE', `configuration ${file}: ${what}`, { hint: `known keys: ${KEYS.join(', ')}` });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which may contain secrets in addresses of mirrors, so it is left out.
    throw new CurlewError('USAGE', `configuration ${file}: not JSON`, { hint: `jq . ${file} shows where` });
  }
  if (!isObject(value)) throw bad('not an object');
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw bad(`unknown key "${unknown}"`);
  const {
    registryMirrors = {},
    allowHttp = [],
    trustRealms = [],
    anyPlatform = [],
    trustedKeys = [],
    imageRegistries = [],
    caFile,
    containerNetwork,
  } = value;
  if (!isObject(registryMirrors)) throw bad('registryMirrors is not an object');
  const mirrors = Object.entries(registryMirrors).flatMap(([host, list]) => {
    const addresses = typeof list === 'string' ? [list] : list;
    if (!isTexts(addresses)) throw bad(`registryMirrors: ${host} has no list of hosts`);
    return addresses.map((address) => {
      try {
        return parseMirror(`${host}=${address}`);
      } catch (error) {
        throw bad(`registryMirrors: ${asError(error).message}`);
      }
    });
  });
  if (!isTexts(allowHttp)) throw bad('allowHttp is not a list of hosts');
  if (!isTexts(trustRealms)) throw bad('trustRealms is not a list of hosts');
  if (!isTexts(anyPlatform)) throw bad('anyPlatform is not a list of images');
  if (!isTexts(trustedKeys)) throw bad('trustedKeys is not a list of paths');
  if (!isTexts(imageRegistries)) throw bad('imageRegistries is not a list of hosts');
  if (caFile !== undefined && typeof caFile !== 'string') throw bad('caFile is not a path');
  const authorities = caFile === undefined ? undefined : resolve(dirname(file), caFile);
  if (containerNetwork !== undefined && typeof containerNetwork !== 'string')
    throw bad('containerNetwork is not a name');
  const builders = byOs(value['builders'], { key: 'builders', bad, read: (image, os) => builderOf(image, os, bad) });
  const repositories = byOs(value['repositories'], {
    key: 'repositories',
    bad,
    read: (list, os) => readRepositories(list, os, bad),
  });
  return {
    registryMirrors: mirrors,
    allowHttp,
    trustRealms,
    anyPlatform,
    caFile: authorities,
    builders,
    repositories,
    s3: s3Of(value['s3'], bad),
    containerNetwork,
    imageRegistries: imageRegistries.map((host) => host.toLowerCase()),
    trustedKeys: trustedKeys.map((key) => resolve(dirname(file), key)),
  };
}

function s3Of(value: unknown, bad: (what: string) => Error): S3Config {
  if (value === undefined) return {};
  if (!isObject(value)) throw bad('s3 is not an object');
  const unknown = Object.keys(value).find((key) => !['endpoint', 'region', 'profile', 'pathStyle'].includes(key));
  if (unknown !== undefined) throw bad(`s3: unknown key "${unknown}"; known: endpoint, region, profile, pathStyle`);
  const text = (key: string): string | undefined => {
    const found = value[key];
    if (found === undefined || typeof found === 'string') return found;
    throw bad(`s3: ${key} is not a string`);
  };
  const { pathStyle } = value;
  if (pathStyle !== undefined && typeof pathStyle !== 'boolean') throw bad('s3: pathStyle is neither true nor false');
  return { endpoint: text('endpoint'), region: text('region'), profile: text('profile'), pathStyle };
}

function builderOf(image: unknown, os: OsId, bad: (what: string) => Error): string {
  const ref = typeof image === 'string' ? parseImageRef(image) : 'not a string';
  if (typeof ref === 'string') throw bad(`builders: ${os}: ${ref}`);
  return formatImageRef(ref);
}
