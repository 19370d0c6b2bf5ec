/** Completes command lines in shells, from the same declarations as help and parsing. scripts/completion calls it. */
import { setTimeout } from 'node:timers/promises';
import type { Where } from './offered-names.ts';
import type { Field } from '../core/field.ts';
import { COMMANDS, familyOf, offeredCommands, splitFirst } from './commands.ts';

interface Candidate {
  readonly value: string;
  readonly help: string;
}

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** The other kinds of words, which shells know themselves. */
  readonly paths: 'files' | 'folders' | 'none';
  /** Names are missing: a disk did not respond in time, and a read of it may never end. */
  readonly isLate?: true;
}

/** Milliseconds for names on disks, which may not respond. */
const LIMIT = 120;

/** Completes the last word; nothing fails, and nothing takes longer than `LIMIT`. */
export async function complete(words: readonly string[], cwd: string): Promise<Completion> {
  const typed = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const isName = before[0]?.startsWith('-') !== true;
  const { name, args } = isName ? splitFirst(before) : (await import('./split-name.ts')).splitName(before);
  const of = (await COMMANDS.get(name)?.load())?.of;
  if (of === undefined)
    return matching(
      typed,
      before.every((word) => word.startsWith('-')) ? commandsIn('') : args.length === 0 ? commandsIn(name) : [],
    );
  const { walkWords } = await import('./walk-words.ts');
  const { options, waiting, next, values } = walkWords(of, args);
  const where = { cwd, values };
  if (waiting !== undefined) return valuesOf(waiting, '', typed, where);
  const [, option, equals, value = ''] = /^--([^=]*)(=)?(.*)$/s.exec(typed) ?? [];
  const assigned = equals === undefined ? undefined : options.get(option ?? '');
  if (assigned !== undefined) return valuesOf(assigned, `--${option}=`, value, where);
  if (typed.startsWith('-')) {
    const open = [...options].filter(([long, { takes }]) => takes === 'many' || !values.has(long));
    return matching(
      typed,
      open.map(([long, { help }]) => ({ value: `--${long}`, help })),
    );
  }
  return next === undefined ? NO_COMPLETION : valuesOf(next, '', typed, where);
}

const NO_COMPLETION: Completion = { candidates: [], paths: 'none' };

function matching(typed: string, all: readonly Candidate[], paths: Completion['paths'] = 'none'): Completion {
  return { candidates: all.filter(({ value }) => value.startsWith(typed)), paths };
}

/** The first words of all commands, or the second ones of a family. */
function commandsIn(word: string): readonly Candidate[] {
  const members = familyOf(word).map(([name, { summary }]) => ({ value: name.slice(word.length + 1), help: summary }));
  if (word !== '') return members;
  const firsts = new Map<string, string>();
  for (const [name, { summary }] of offeredCommands()) {
    const [first = '', second] = name.split(' ');
    const others = firsts.get(first);
    firsts.set(first, second === undefined ? summary : others === undefined ? second : `${others}, ${second}`);
  }
  return [...firsts].map(([value, help]) => ({ value, help }));
}

async function valuesOf(field: Field, before: string, typed: string, where: Where): Promise<Completion> {
  const { values, names, offers, value } = field;
  const paths = names === undefined ? 'none' : /^(?:DIR|FOLDER|STORE$|STORE\|URL)/.test(value) ? 'folders' : 'files';
  const candidates = values ?? (offers === undefined ? [] : await withinLimit(namesOf(offers, typed, where)));
  const completion = matching(
    `${before}${typed}`,
    (candidates ?? []).map((one) => ({ value: `${before}${one}`, help: '' })),
    paths,
  );
  return candidates === undefined ? { ...completion, isLate: true } : completion;
}

async function namesOf(offers: NonNullable<Field['offers']>, typed: string, where: Where): Promise<readonly string[]> {
  if (offers === 'topic') return (await import('./help.ts')).topics(where.values.get('topic') ?? []);
  const { offeredNames } = await import('./offered-names.ts');
  return offeredNames(offers, typed, where);
}

/** Undefined if the names are late. */
async function withinLimit(names: Promise<readonly string[]>): Promise<readonly string[] | undefined> {
  const late = async (): Promise<undefined> => {
    // Waits in two halves: on a busy machine the first may pass before the process gets to its disk.
    await setTimeout(LIMIT / 2);
    return setTimeout(LIMIT / 2, undefined);
  };
  return Promise.race([names, late()]);
}

/** The lines that the scripts of shells read: `paths`, then a candidate a line, with its help after a tab. */
export function completionLines({ paths, candidates }: Completion): string {
  const rows = candidates.filter(({ value }) => !/[\u0000-\u001f\u007f]/.test(value));
  return [paths, ...rows.map(({ value, help }) => `${value}\t${help}`)].join('\n');
}
