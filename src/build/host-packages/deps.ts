/** The packages that the operator of a system must install: the names in an operating system's `Deps`, by kURL's rules. */
import type { Collected } from './collector.ts';

export interface DepsInput {
  /** Names from directives that produce only names for the system, such as `yum` for rhel-9. */
  readonly direct: readonly string[];
  /** Names from directives that produce package files for it, such as `yum9`. */
  readonly shipped: readonly string[];
  /** The results of those, one for each folder with package files. */
  readonly collected: readonly Pick<Collected, 'packages' | 'requires'>[];
}

/** Direct requirements of packages, without packages in the same folder; one name of two alternatives. */
function required({ packages, requires }: Pick<Collected, 'packages' | 'requires'>): readonly string[] {
  const both = requires.includes('libcurl') && requires.includes('libcurl-minimal');
  const names = new Set(packages.map(({ name }) => name));
  return requires
    .filter((name) => !(both && name === 'libcurl'))
    .map((name) => name.replaceAll('openssl-snapsafe-libs', 'openssl-libs'))
    .filter((name) => !names.has(name));
}

/**
 * The names, sorted, each once. A direct name is dropped if it contains a shipped name: with `yum9 collectd`, the name
 * `collectd-disk` of another directive is also dropped. Without any name, the system's folder is omitted, including its
 * package files.
 */
export function depsOf({ direct, shipped, collected }: DepsInput): readonly string[] {
  const remaining = direct.filter((name) => !shipped.some((part) => name.includes(part)));
  const names = [...remaining, ...collected.flatMap(required)].filter((name) => name.trim() !== '');
  return [...new Set(names)].sort();
}

/** The text of `Deps`: a name on each line. */
export function depsText(names: readonly string[]): string {
  return names.map((name) => `${name}\n`).join('');
}
