/** Rules about the functions of an install.sh. Pure. */
import { hookFunction, HOOK_NAMES, HOOKS, type Hook } from './hooks.ts';
import { eachRepeated } from './directive.ts';
import type { Place } from '../core/diagnostic.ts';
import { editDistance } from '../core/nearest.ts';
import { quoted, type Find } from './rules.ts';
import type { ShellFunction } from '../formats/bash/shell.ts';

/** Shorter names have too many neighbors one letter away. */
const MIN_COMPARED = 4;

/** Longer texts are not versions. */
const MAX_VERSION = 128;

interface Named {
  readonly name: string;
  readonly version: string;
}

/** Limit of repeated findings: a hostile script may define hundreds of thousands of functions. */
const MAX_REPORTED = 100;

/** `file` is the install.sh, for findings without a function. */
export function checkHooks(
  { name, version }: Named,
  file: string,
  { text, functions }: { readonly text: string; readonly functions: readonly ShellFunction[] },
  find: Find,
): void {
  const defined = new Set(functions.map((one) => one.name));
  const misspelt = findMisspelt(name, text, functions, defined);
  checkInstall({ name, version }, file, defined, misspelt, find);
  for (const [{ name: written, place }, hook] of misspelt) {
    const meant = hookFunction(name, hook);
    const message = `${quoted(written)} is not a hook, so nothing calls it`;
    find('hook/misspelt', place, message, `did you mean "${meant}", called ${HOOKS[hook].about}?`);
  }
  for (const one of functions
    .filter((each) => !misspelt.has(each) && !hasPrefix(name, each.name))
    .slice(0, MAX_REPORTED)) {
    const message = `the function ${quoted(one.name)} does not begin with the name of the add-on`;
    const hint = `all add-ons share one shell: rename it to "${name.replaceAll('-', '_')}_${one.name.slice(0, 80)}"`;
    find('hook/prefix', one.place, message, hint);
  }
  checkFolder({ name, version }, file, text, find);
  const hooks = new Set(HOOK_NAMES.map((hook) => hookFunction(name, hook)));
  eachRepeated(
    functions,
    (one) => (hooks.has(one.name) ? one.name : undefined),
    (one, first) => {
      find('hook/duplicate', one.place, `line ${first.place.line} already defines ${quoted(one.name)}`);
    },
  );
}

/** A copy of a version whose paths still name that version would install its files again. */
function checkFolder({ name, version }: Named, file: string, text: string, find: Find): void {
  const folder = `/addons/${name}/`;
  let other: { readonly version: string; readonly place: Place } | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    if (/^[ \t]*#/.test(line)) continue;
    for (let at = line.indexOf(folder); at !== -1; at = line.indexOf(folder, at + 1)) {
      const from = at + folder.length;
      const written = /^[\w.+-]*/.exec(line.slice(from, from + MAX_VERSION))?.[0] ?? '';
      if (!/^v?\d/.test(written) || written === version) return;
      other ??= { version: written, place: { file, line: index + 1, column: from + 1, length: written.length } };
    }
  }
  if (other === undefined) return;
  const message = `install.sh of ${version} reads the folder of version ${other.version}, and not its own`;
  find('hook/other-version', other.place, message, `write ${version} in every path and message`);
}

function checkInstall(
  { name, version }: Named,
  file: string,
  defined: ReadonlySet<string>,
  misspelt: ReadonlyMap<ShellFunction, Hook>,
  find: Find,
): void {
  const install = hookFunction(name, 'install');
  if (defined.has(install)) return;
  const [guess] = [...misspelt.keys()];
  const place = guess?.place ?? { file, line: 1, column: 1, length: 1 };
  const hooks = HOOK_NAMES.filter((hook) => defined.has(hookFunction(name, hook)));
  if (hooks.length > 0) {
    const hint =
      'kURL fails without it: define it; if only other add-ons call these functions, add "# curlew-lint-ignore-file hook/no-install"';
    find('hook/no-install', { file, line: 1, column: 1, length: 1 }, `no function "${install}"`, hint);
    return;
  }
  if (misspelt.size === 0 && isStep({ name, version }, defined)) return;
  const known = HOOK_NAMES.map((hook) => hookFunction(name, hook)).join(', ');
  find('hook/none', place, 'install.sh defines no lifecycle hook', `define at least one of ${known}`);
}

/** Functions named after the version are upgrade steps, called by other add-ons that know that version. */
function isStep({ name, version }: Named, functions: ReadonlySet<string>): boolean {
  const prefix = `${name}_${version}_`.replaceAll(/[.-]/g, '_');
  return [...functions].some((one) => one.startsWith(prefix));
}

/**
 * Functions that are not hooks but differ from an undefined hook by one letter, one swap, or `_` for `-`, and that the script
 * does not call itself.
 */
function findMisspelt(
  name: string,
  text: string,
  functions: readonly ShellFunction[],
  defined: ReadonlySet<string>,
): ReadonlyMap<ShellFunction, Hook> {
  const hooks = HOOK_NAMES.map((hook) => ({ hook, called: hookFunction(name, hook) }));
  const names = new Set(hooks.map(({ called }) => called));
  const missing = hooks.filter(({ called }) => !defined.has(called));
  const misspelt = new Map<ShellFunction, Hook>();
  for (const one of functions) {
    if (names.has(one.name)) continue;
    const meant = missing.find(({ called }) => isNear(one.name, called));
    if (meant !== undefined && !occursTwice(one.name, text)) misspelt.set(one, meant.hook);
  }
  return misspelt;
}

function occursTwice(name: string, text: string): boolean {
  const whole = (from: number): boolean => !/[\w.-]/.test(`${text.charAt(from - 1)}${text.charAt(from + name.length)}`);
  let count = 0;
  // End of the line of the last occurrence, and whether it is a comment: a long line is scanned only once.
  let lineEnd = -1;
  let isComment = false;
  for (let at = text.indexOf(name); at !== -1 && count < 2; at = text.indexOf(name, at + 1)) {
    if (at > lineEnd) {
      const end = text.indexOf('\n', at);
      const start = text.lastIndexOf('\n', at) + 1;
      lineEnd = end === -1 ? text.length : end;
      isComment = /^[ \t]*#/.test(text.slice(start, lineEnd));
    }
    if (whole(at) && !isComment) count += 1;
  }
  return count > 1;
}

function isNear(written: string, meant: string): boolean {
  if (meant.length < MIN_COMPARED) return false;
  // The length excludes most pairs before the expensive comparison.
  if (Math.abs(written.length - meant.length) > 1) return false;
  const loose = (text: string): string => text.replaceAll('-', '_').toLowerCase();
  return loose(written) === loose(meant) || editDistance(written, meant) === 1;
}

function hasPrefix(name: string, written: string): boolean {
  const bare = written.replace(/^_+/, '');
  return [name, name.replaceAll(/[.-]/g, '_')].some(
    (prefix) => bare === prefix || bare.startsWith(`${prefix}_`) || bare.startsWith(`${prefix}-`),
  );
}
