/** The calls of a script, and the variables that it sets, tests and reads. Depends on its text only, so copies are parsed once. Pure. */
import { DECLARING, scanExpanded, scanShell, type ShellCommand, type ShellScript } from '../formats/bash/shell-scan.ts';
import type { ShellWord, WordPart } from '../formats/bash/shell-cursor.ts';
import { literal } from '../formats/bash/shell-text.ts';

/** A path as written in a script; its folder may still be a variable. */
export interface PathUse {
  readonly parts: readonly WordPart[];
  /** `template` is read and expanded, `source` is read as code; a `made` or `tested` file is not required. */
  readonly role: 'read' | 'template' | 'source' | 'made' | 'tested';
  readonly offset: number;
}

export interface ScriptFacts {
  readonly functions: ReadonlySet<string>;
  readonly assigned: ReadonlySet<string>;
  /** Names whose existence it tests before calling them. */
  readonly tested: ReadonlySet<string>;
  /** By name, the offset of the first call. */
  readonly calls: ReadonlyMap<string, number>;
  /** By name, the first place without a default value, or else the first. */
  readonly reads: ReadonlyMap<string, { readonly offset: number; readonly guarded: boolean }>;
  readonly paths: readonly PathUse[];
  /** Programs called below `$DIR/bin`, `kurl` with up to two literal arguments: the offset of the first call. */
  readonly programs: ReadonlyMap<string, number>;
}

interface Gathering {
  readonly functions: Set<string>;
  readonly assigned: Set<string>;
  readonly tested: Set<string>;
  readonly calls: Map<string, number>;
  readonly reads: Map<string, { readonly offset: number; readonly guarded: boolean }>;
  readonly paths: PathUse[];
  readonly programs: Map<string, number>;
}

/** Number of arguments before the command that a function of the library calls. */
const CALLERS: Readonly<Record<string, number>> = {
  spinner_until: 1,
  try_1m: 0,
  try_5m: 0,
  try_1m_stderr: 0,
  cmd_retry: 1,
  maybe: 0,
};
/** Programs that run another command; options and NAME=value come before it. */
const RUNNERS: ReadonlySet<string> = new Set(
  'builtin command env exec ionice nice nohup setsid sudo timeout'.split(' '),
);
const EXISTENCE_TESTS: ReadonlySet<string> = new Set('commandExists hash type which'.split(' '));
const READERS: ReadonlySet<string> = new Set('getopts mapfile read readarray'.split(' '));
const RENDERERS: ReadonlySet<string> = new Set('render_file render_yaml_file render_yaml_file_2'.split(' '));
const NAME = /^[A-Za-z_]\w*$/;
const CALLED = /^[A-Za-z_][\w.+-]*$/;
const DEEPEST = 8;

export function scriptFacts(text: string): ScriptFacts {
  const facts = newGathering();
  gather(scanShell(text), facts, undefined, 0);
  return facts;
}

/** The facts of a file that is expanded like a here-document: only `$…` counts. */
export function templateFacts(text: string): ScriptFacts {
  const facts = newGathering();
  gather(scanExpanded(text), facts, undefined, 0);
  return facts;
}

function newGathering(): Gathering {
  const [functions, assigned, tested] = [new Set<string>(), new Set<string>(), new Set<string>()];
  return { functions, assigned, tested, calls: new Map(), reads: new Map(), paths: [], programs: new Map() };
}

/** `at` is the offset of the quoted text if the script is inside another one. */
function gather(script: ShellScript, into: Gathering, at: number | undefined, depth: number): void {
  for (const { name } of script.functions) into.functions.add(name);
  for (const name of script.assigned) into.assigned.add(name);
  for (const { name, offset, guarded } of script.reads) {
    const known = into.reads.get(name);
    if (known === undefined || (known.guarded && !guarded)) into.reads.set(name, { offset: at ?? offset, guarded });
  }
  const constants = constantsOf(script);
  for (const command of script.commands) {
    gatherNames(command, into);
    gatherCalls(command.words, into, at, depth);
    gatherPaths(command, constants, into, at);
  }
}

/** Names that a command sets. */
function gatherNames({ words }: ShellCommand, { assigned }: Gathering): void {
  const [command, ...rest] = words.map(literal);
  if (command === undefined) return;
  const add = (name: string | undefined): void => {
    if (name !== undefined && NAME.test(name)) assigned.add(name);
  };
  if (command === 'for' || command === 'select') add(rest[0]);
  else if (READERS.has(command)) rest.forEach(add);
  else if (DECLARING.has(command) && command !== 'export') rest.forEach(add);
  else if (command === 'printf' && rest[0] === '-v') add(rest[1]);
  else if (command === 'eval') {
    for (const { parts } of words) {
      for (const part of parts) {
        if (part.kind === 'text') for (const [, name] of part.text.matchAll(/\b([A-Za-z_]\w*)=/g)) add(name);
      }
    }
  }
}

function gatherCalls(words: readonly ShellWord[], into: Gathering, at: number | undefined, depth: number): void {
  const [first, ...rest] = words;
  if (first === undefined) return;
  gatherProgram(first, rest.slice(0, 2).map(literal), into, at);
  const command = literal(first);
  if (command === undefined) return;
  const offset = at ?? first.offset;
  const [next] = rest.map(literal);
  if (command.startsWith('-')) {
    gatherCalls(rest, into, at, depth);
    return;
  }
  const tests =
    (command === 'command' && /^-[vV]/.test(next ?? '')) || (DECLARING.has(command) && /^-[fF]/.test(next ?? ''));
  if (EXISTENCE_TESTS.has(command) || tests) {
    for (const word of rest) into.tested.add(literal(word) ?? '');
  }
  if (CALLED.test(command) && !into.calls.has(command)) into.calls.set(command, offset);
  if (tests) return;
  const code = command === 'eval' ? rest.map(textOf).join(' ') : command === 'trap' ? next : undefined;
  if (code !== undefined && code !== '-' && depth < DEEPEST) gather(scanShell(code), into, offset, depth + 1);
  const skipped = CALLERS[command];
  if (skipped !== undefined && Object.hasOwn(CALLERS, command)) gatherCalls(rest.slice(skipped), into, at, depth);
  else if (RUNNERS.has(command)) gatherCalls(afterOptions(command, rest), into, at, depth);
}

const BELOW_BIN = /^(?:(?:\$\{DIR\}|\.)\/bin\/([\w-]+)|\$\{BIN_([A-Z_]+)\})$/;

function gatherProgram(
  word: ShellWord,
  behind: readonly (string | undefined)[],
  { programs }: Gathering,
  at: number | undefined,
): void {
  const [, path, variable] = BELOW_BIN.exec(textOf(word)) ?? [];
  const name = path ?? variable?.toLowerCase().replaceAll('_', '-');
  const verbs = behind.filter((one) => one !== undefined && /^[a-z][a-z-]*$/.test(one));
  const key = name === 'kurl' ? ['kurl', ...verbs].join(' ') : name;
  if (key !== undefined && !programs.has(key)) programs.set(key, at ?? word.offset);
}

function afterOptions(command: string, words: readonly ShellWord[]): readonly ShellWord[] {
  const start = words.findIndex((word) => !/^-|^\w+=|^$/.test(textOf(word)));
  return start === -1 ? [] : words.slice(command === 'timeout' ? start + 1 : start);
}

/** The source text of a word, with its variables unexpanded: enough to read quoted code. */
function textOf({ parts }: ShellWord): string {
  return parts
    .map((part) => (part.kind === 'text' ? part.text : part.kind === 'variable' ? `\${${part.name}}` : '$_'))
    .join('');
}

type Constants = ReadonlyMap<string, ShellWord | undefined>;

/** By `function name`: values of variables; undefined for those with several values. */
function constantsOf({ commands }: ShellScript): Constants {
  const values = new Map<string, ShellWord | undefined>();
  for (const { assignments, within = '', words } of commands) {
    const command = literal(words[0]);
    // Set for one command only.
    if (command !== undefined && !DECLARING.has(command)) continue;
    for (const { name, value } of assignments) {
      const key = `${within} ${name}`;
      const before = values.get(key);
      const same = before !== undefined && value !== undefined && textOf(before) === textOf(value);
      values.set(key, !values.has(key) || same ? value : undefined);
    }
  }
  return values;
}

function gatherPaths(command: ShellCommand, constants: Constants, into: Gathering, at: number | undefined): void {
  const { words, writes, within = '' } = command;
  const add = (word: ShellWord | undefined, role: PathUse['role']): void => {
    if (word === undefined || word.pattern || word.parts.length === 0) return;
    into.paths.push({ parts: expanded(word.parts, within, constants, 0), role, offset: at ?? word.offset });
  };
  for (const word of writes) add(word, 'made');
  const [name, ...rest] = words;
  const called = literal(name) ?? '';
  const plain = rest.filter((word) => !(literal(word) ?? '').startsWith('-'));
  if (RENDERERS.has(called)) add(rest[0], 'template');
  else if (called === 'source' || called === '.') add(rest[0], 'source');
  else if (called === 'cat') for (const word of plain) add(word, 'read');
  else if (called === 'cp' || called === 'mv') {
    if (rest.some((word) => /^(?:-t|--target)/.test(literal(word) ?? ''))) return;
    for (const word of plain.slice(0, -1)) add(word, 'read');
    add(plain.at(-1), 'made');
  } else if (called === 'kubectl' || called === 'bash' || called === 'sh') gatherNamed(called, rest, add);
  else if (['mkdir', 'touch', 'tee', 'install', 'ln'].includes(called)) for (const word of plain) add(word, 'made');
  else if (['[', '[[', 'test'].includes(called)) {
    for (const [index, word] of rest.entries())
      if (/^-[a-zA-Z]$/.test(literal(word) ?? '')) add(rest[index + 1], 'tested');
  } else if (called === 'rm' || called === 'find' || called === 'ls') for (const word of plain) add(word, 'tested');
}

function gatherNamed(
  called: string,
  words: readonly ShellWord[],
  add: (word: ShellWord | undefined, role: PathUse['role']) => void,
): void {
  if (called !== 'kubectl') {
    const [first] = words;
    if (!(literal(first) ?? '-').startsWith('-') || first?.parts[0]?.kind === 'variable') add(first, 'read');
    return;
  }
  for (const [index, word] of words.entries()) {
    if (['-f', '-k', '--filename', '--kustomize'].includes(literal(word) ?? '')) add(words[index + 1], 'read');
  }
}

function expanded(
  parts: readonly WordPart[],
  within: string,
  constants: Constants,
  depth: number,
): readonly WordPart[] {
  if (depth >= DEEPEST) return [{ kind: 'unknown' }];
  return parts.flatMap((part): readonly WordPart[] => {
    if (part.kind !== 'variable') return [part];
    const key = [`${within} ${part.name}`, ` ${part.name}`].find((one) => constants.has(one));
    if (key === undefined) return [part];
    const value = constants.get(key);
    return value === undefined ? [{ kind: 'unknown' }] : expanded(value.parts, within, constants, depth + 1);
  });
}
