/** The configuration file: options that a site sets once. */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { parseText, shallowJson } from '../../core/json.ts';
import { convert, type Read } from '../../core/schema.ts';
import { configSchema } from './config-schema.ts';

export type Config = Read<ReturnType<typeof configSchema>>;

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
    if (path === undefined && errnoOf(error) === 'ENOENT') return parseConfig('{}', file);
    throw fileError(`read the configuration ${file}`, error);
  }
  return parseConfig(text, file);
}

function parseConfig(text: string, file: string): Config {
  const bad = (what: string, hint = 'docs/configuration.md describes each key'): CurlewError =>
    new CurlewError('USAGE', `configuration ${file}: ${what}`, { hint });
  // The parser's message would quote the text, which may contain secrets in addresses of mirrors.
  const json = parseText(text, shallowJson, (what) => bad(what, `jq . ${file} shows where`));
  const read = convert(configSchema(dirname(file)), json);
  if ('value' in read) return read.value;
  throw bad(read.problems[0].message, read.problems[0].hint);
}
