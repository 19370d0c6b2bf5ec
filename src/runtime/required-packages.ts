/** Host packages that add-ons leave to the operator (`Deps`), asked of this machine by the library of hooks. */
import { join } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { packagePath } from '../core/layout.ts';
import { formatRef } from '../core/ref.ts';
import { runProgram } from '../preflight/program.ts';
import type { RunRequest } from './prepare.ts';
import type { SourcePackage } from './source.ts';

export interface MissingPackage {
  readonly name: string;
  /** The add-ons that need it, with their versions. */
  readonly neededBy: readonly string[];
  /** A repository of this machine offers it, as far as its indexes that are here tell. */
  readonly offered: boolean;
}

export interface MissingPackages {
  /** The whole command that installs them. */
  readonly command: string;
  readonly packages: readonly MissingPackage[];
}

const ASK = 'for file in "$0"/*.sh; do source "$file"; done; curlew_missing_packages "$@"';
/** A package manager that waits for another one's lock must not hold up a run for ever. */
const LIMIT_MS = 120_000;

/** What lacks of all that these packages need here; undefined when nothing does. Nothing is changed. */
export async function missingPackages(
  packages: readonly SourcePackage[],
  { scripts, env, signal }: Pick<RunRequest, 'scripts' | 'env'> & { readonly signal: AbortSignal },
): Promise<MissingPackages | undefined> {
  const neededBy = new Map<string, string[]>();
  for (const { ref, addon } of packages) {
    for (const [os, names] of Object.entries(addon.deps)) {
      for (const [at, name] of names.entries()) {
        requireName(name, `${formatRef(ref)}: ${packagePath.deps(os)}:${at + 1}`);
        const key = `${os} ${name}`;
        neededBy.set(key, [...(neededBy.get(key) ?? []), `${ref.name} ${ref.version}`]);
      }
    }
  }
  if (neededBy.size === 0) return undefined;
  const [command = '', ...rows] = await ask([...neededBy.keys()], join(scripts, 'lib'), env, signal);
  const found = rows.map((row): MissingPackage => {
    const [key = '', offered] = row.split('\t');
    return { name: key.slice(key.indexOf(' ') + 1), neededBy: neededBy.get(key) ?? [], offered: offered === 'yes' };
  });
  if (found.length === 0) return undefined;
  return { command: [command, ...found.map(({ name }) => name)].join(' '), packages: found };
}

/** Names and what a package provides, as rpm writes it; nothing that could be an option or more than one word. */
const NAME = /^[A-Za-z0-9/][A-Za-z0-9+._/:@()-]*$/;

function requireName(name: string, place: string): void {
  if (NAME.test(name)) return;
  throw new CurlewError('PACKAGE_INVALID', `${place}: ${JSON.stringify(name)} is no name of a package`, {
    hint: 'build the add-on again',
  });
}

/** Lines that the library prints: how packages are installed here, then those that lack. */
async function ask(
  keys: readonly string[],
  library: string,
  { PATH, CURLEW_OS_RELEASE }: RunRequest['env'],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const limit = AbortSignal.timeout(LIMIT_MS);
  const doing = 'look for the host packages that add-ons need';
  try {
    const host = { env: { PATH, CURLEW_OS_RELEASE, LC_ALL: 'C' }, signal: AbortSignal.any([signal, limit]) };
    const { status, stdout, stderr } = await runProgram(
      'bash',
      ['--noprofile', '--norc', '-c', ASK, library, ...keys],
      host,
    );
    if (status === 0) return stdout.split('\n').filter((line) => line !== '');
    throw new CurlewError(
      'PROGRAM_FAILED',
      `${doing}: ${stderr.trim() === '' ? `bash ended with status ${status}` : stderr.trim()}`,
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CurlewError) throw error;
    const late = limit.aborted ? `: no answer for ${LIMIT_MS / 1000} s` : '';
    throw new CurlewError('PROGRAM_FAILED', `${doing}${late}`, {
      hint: 'see whether another program is installing packages, and wait for it to end',
      cause: error,
    });
  }
}
