/** The configuration file: what a site sets once instead of giving the same flags every time. */
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import type { CommandContext } from './command.ts';

export interface Config {
  /** Registry host to the mirrors that are asked first, in order. */
  readonly registryMirrors: Readonly<Record<string, readonly string[]>>;
  /** Hosts that may be asked over plain http. */
  readonly allowHttp: readonly string[];
  /** Hosts that may be sent credentials as the realm of another registry. */
  readonly trustRealms: readonly string[];
  readonly caFile: string | undefined;
}

const EMPTY: Config = { registryMirrors: {}, allowHttp: [], trustRealms: [], caFile: undefined };
const KEYS: readonly string[] = Object.keys(EMPTY);

/** The folder of the user's own settings or data, by the XDG base directory specification. */
export function xdgFolder(env: CommandContext['env'], variable: string, fallback: string): string {
  const set = env[variable];
  return set !== undefined && set.startsWith('/') ? set : join(env['HOME'] ?? '/', fallback);
}

/** Reads the file named, or the user's own if there is one. A key that is not known is an error: it would do nothing. */
export async function readConfig(
  path: string | undefined,
  { env, cwd }: Pick<CommandContext, 'env' | 'cwd'>,
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
  } catch (error) {
    throw new CurlewError('USAGE', `configuration ${file}: not JSON`, { cause: error });
  }
  if (!isRecord(value)) throw bad('not an object');
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw bad(`unknown key "${unknown}"`);
  const { registryMirrors = {}, allowHttp = [], trustRealms = [], caFile } = value;
  if (!isRecord(registryMirrors)) throw bad('registryMirrors is not an object');
  const mirrors = Object.entries(registryMirrors).map(([host, list]) => {
    const hosts = typeof list === 'string' ? [list] : list;
    if (!isTexts(hosts)) throw bad(`registryMirrors: ${host} has no list of hosts`);
    return [host, hosts] as const;
  });
  if (!isTexts(allowHttp)) throw bad('allowHttp is not a list of hosts');
  if (!isTexts(trustRealms)) throw bad('trustRealms is not a list of hosts');
  if (caFile !== undefined && typeof caFile !== 'string') throw bad('caFile is not a path');
  return { registryMirrors: Object.fromEntries(mirrors), allowHttp, trustRealms, caFile };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
