/** What the operator of a system must have installed himself: the names in an operating system's `Deps`, by kURL's rules. */
import type { Collected } from './collector.ts';

export interface DepsInput {
  /** Names in directives that leave only names for the system, such as `yum` for rhel-9. */
  readonly direct: readonly string[];
  /** Names in directives that leave package files for it, such as `yum9`. */
  readonly shipped: readonly string[];
  /** What came of those, one for each folder with package files. */
  readonly collected: readonly Pick<Collected, 'packages' | 'requires'>[];
}

/** What packages require directly: without what lies beside them, one of two names where only one is meant. */
function required({ packages, requires }: Pick<Collected, 'packages' | 'requires'>): readonly string[] {
  const both = requires.includes('libcurl') && requires.includes('libcurl-minimal');
  const names = new Set(packages.map(({ name }) => name));
  return requires
    .filter((name) => !(both && name === 'libcurl'))
    .map((name) => name.replaceAll('openssl-snapsafe-libs', 'openssl-libs'))
    .filter((name) => !names.has(name));
}

/**
 * The names, sorted and each once. A direct name goes when a shipped name is part of it: with `yum9 collectd` the name
 * `collectd-disk` of another directive is left out too. No name at all means that the system's folder is left out as a
 * whole, package files included.
 */
export function depsOf({ direct, shipped, collected }: DepsInput): readonly string[] {
  const wanted = direct.filter((name) => !shipped.some((part) => name.includes(part)));
  const names = [...wanted, ...collected.flatMap(required)].filter((name) => name.trim() !== '');
  return [...new Set(names)].sort();
}

/** The text of `Deps`: a name on each line. */
export function depsText(names: readonly string[]): string {
  return names.map((name) => `${name}\n`).join('');
}
