/** Analyzes a Dockerfile before it is sent to the engine. Pure. */
import { jsonIn } from '../../core/json.ts';
import { CurlewError } from '../../core/errors.ts';

export interface Dockerfile {
  readonly text: string;
  /** One for each `FROM`, in order. */
  readonly bases: readonly Stage[];
  /** Images that `COPY --from` names and that are not stages, as written. */
  readonly copied: readonly string[];
  /** It copies or adds files from its context. */
  readonly usesContext: boolean;
  /** Maps a line of the {@link labelled} text to a line of the original. */
  readonly lineOf: (line: number) => number;
}

interface Stage {
  /** Image as written, variables and all, or the name of an earlier stage. */
  readonly image: string;
  readonly name: string | undefined;
  /** Line after which the stage begins, from 1. */
  readonly line: number;
}

interface Instruction {
  readonly keyword: string;
  readonly rest: string;
  /** Its last line, from 1. */
  readonly line: number;
}

const DIRECTIVE = /^#\s*([A-Za-z][A-Za-z0-9]*)\s*=(.+)$/s;

/** The character that continues a line: `\`, unless a parser directive at the top changes it. */
function escapeOf(lines: readonly string[]): string {
  for (const line of lines) {
    const [, name, value] = DIRECTIVE.exec(line) ?? [];
    if (name === undefined) return '\\';
    if (name.toLowerCase() === 'escape') return value?.trim() === '`' ? '`' : '\\';
  }
  return '\\';
}

/** The instructions with continued lines joined. Omits comments and empty lines within an instruction, like the builder. */
function instructionsOf(text: string): readonly Instruction[] {
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  const escape = escapeOf(lines);
  const instructions: Instruction[] = [];
  let joined: string | undefined;
  let last = 0;
  const finish = (): void => {
    const [, keyword, rest] = /^\s*(\S+)(?:\s+([\s\S]*))?$/.exec(joined ?? '') ?? [];
    if (keyword !== undefined)
      instructions.push({ keyword: keyword.toUpperCase(), rest: (rest ?? '').trim(), line: last });
    joined = undefined;
  };
  for (const [index, line] of lines.entries()) {
    if (/^\s*#/.test(line) || (line.trim() === '' && joined !== undefined)) continue;
    const trimmed = line.trimEnd();
    const continued = trimmed.endsWith(escape);
    joined = `${joined ?? ''}${continued ? trimmed.slice(0, -1) : trimmed}`;
    last = index + 1;
    if (!continued) finish();
  }
  finish();
  return instructions;
}

/** The flags and arguments of `COPY` and `ADD`, also in JSON form. */
function argumentsOf(rest: string): { readonly flags: readonly string[]; readonly words: readonly string[] } {
  const flags: string[] = [];
  let remaining = rest;
  for (let match = /^(--\S+)\s*/.exec(remaining); match !== null; match = /^(--\S+)\s*/.exec(remaining)) {
    flags.push(match[1] ?? '');
    remaining = remaining.slice(match[0].length);
  }
  if (remaining.startsWith('[')) {
    const value = jsonIn(remaining);
    // Otherwise the builder also treats it as plain words.
    if (Array.isArray(value)) return { flags, words: value.map(String) };
  }
  return { flags, words: remaining.split(/\s+/).filter((word) => word !== '') };
}

function fromOf(flags: readonly string[]): string | undefined {
  return flags.find((flag) => flag.startsWith('--from='))?.slice('--from='.length);
}

/** Reads a Dockerfile. Leaves errors to the builder. */
export function readDockerfile(text: string): Dockerfile {
  const instructions = instructionsOf(text);
  const bases = instructions.flatMap(({ keyword, rest, line }): readonly Stage[] => {
    if (keyword !== 'FROM') return [];
    const { words } = argumentsOf(rest);
    const [image = '', as, name] = words;
    return [{ image, name: as?.toLowerCase() === 'as' ? name?.toLowerCase() : undefined, line }];
  });
  const copies = instructions.filter(({ keyword }) => keyword === 'COPY' || keyword === 'ADD');
  const usesContext = copies.some(({ keyword, rest }) => {
    const { flags, words } = argumentsOf(rest);
    if (fromOf(flags) !== undefined) return false;
    return keyword === 'COPY' || words.slice(0, -1).some((word) => !/^(?:https?|ftp|git):/.test(word));
  });
  const names = new Set(bases.map(({ name }) => name));
  const copied = copies.flatMap(({ rest }) => fromOf(argumentsOf(rest).flags) ?? []);
  return {
    text,
    bases,
    copied: copied.filter((from) => !/^\d+$/.test(from) && !names.has(from.toLowerCase())),
    usesContext,
    lineOf: (line) => {
      const added = bases.filter((stage, index) => stage.line + index + 1 < line).length;
      return line - added;
    },
  };
}

/** Adds a `LABEL` line to the beginning of every stage, so that all images and containers built from it have the labels. */
export function labelled({ text, bases }: Dockerfile, labels: Readonly<Record<string, string>>): string {
  const line = `LABEL ${Object.entries(labels)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(' ')}`;
  const lines = text.split('\n');
  for (const stage of bases.toReversed()) lines.splice(stage.line, 0, line);
  return lines.join('\n');
}

const VARIABLE = /\\\$|\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::([-+])([^}]*))?\})/g;

function substitute(text: string, values: ReadonlyMap<string, string>): string {
  return text.replaceAll(VARIABLE, (whole, bare, braced, operator, word) => {
    if (whole === '\\$') return '$';
    const value = values.get(String(bare ?? braced)) ?? '';
    if (operator === '-') return value === '' ? String(word) : value;
    if (operator === '+') return value === '' ? '' : String(word);
    return value;
  });
}

/** Longer than any image name; nested arguments could otherwise exhaust the memory. */
const MAX_LENGTH = 4096;

function short(name: string, value: string): string {
  if (value.length <= MAX_LENGTH) return value;
  throw new CurlewError(
    'CONTAINER_FAILED',
    `the Dockerfile: ${name.slice(0, 60)} has more than ${MAX_LENGTH} characters`,
    { hint: 'use ARG lines before FROM, and FROM itself, only for names and versions of images' },
  );
}

/**
 * The images that a build with these arguments starts or copies from, each once: `FROM` can use the `ARG`s before the first
 * `FROM`, whose defaults the arguments replace. Excludes `scratch` and earlier stages. An empty name means a variable without
 * a value.
 */
export function baseImages(dockerfile: Dockerfile, args: Readonly<Record<string, string>>): readonly string[] {
  const values = new Map<string, string>();
  for (const { keyword, rest } of instructionsOf(dockerfile.text)) {
    if (keyword === 'FROM') break;
    if (keyword !== 'ARG') continue;
    for (const [, name = '', quoted, single, plain] of rest.matchAll(
      /([A-Za-z_][A-Za-z0-9_]*)(?:=(?:"([^"]*)"|'([^']*)'|(\S*)))?/g,
    )) {
      const value = args[name] ?? quoted ?? single ?? plain;
      if (value !== undefined) values.set(name, short(name, substitute(short(name, value), values)));
    }
  }
  const stages = new Set<string>();
  const images = new Set<string>();
  for (const { image, name } of dockerfile.bases) {
    const resolved = substitute(short('FROM', image).replace(/^(["'])(.*)\1$/, '$2'), values);
    if (resolved !== 'scratch' && !stages.has(resolved.toLowerCase())) images.add(resolved);
    if (name !== undefined) stages.add(name);
  }
  for (const image of dockerfile.copied) images.add(image);
  return [...images];
}
