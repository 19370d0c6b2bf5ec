/**
 * Rules that other programs check: `bash -n` and shellcheck. Neither runs any code of the script. Each process checks many
 * files, because starting it takes longer than checking.
 */
import { availableParallelism } from 'node:os';
import type { Diagnostic } from '../core/diagnostic.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { tryProgram } from '../platform/process/run-program.ts';
import { CurlewError, errnoOf } from '../core/errors.ts';
import { shortened } from '../core/shortened.ts';
import { finding } from './rules.ts';

export interface Script {
  /** Absolute. */
  readonly path: string;
  /** For messages. */
  readonly shown: string;
  readonly text: string;
}

export interface ShellOptions {
  /** PATH for these programs. */
  readonly searchPath: string | undefined;
  readonly signal: AbortSignal;
}

const SHELLCHECK_BATCH = 12;
const OUTPUT_LIMIT = 16 * 1024 * 1024;
/** The status of each file closes its output, on a line that differs from every message of bash. */
const CHECK_EACH = 'for file; do "$BASH" -n -- "$file"; printf "\\n\\036%d\\n" "$?"; done 2>&1';

/** Install scripts are sourced, not run: no shebang, unknown sourced files, variables used elsewhere. */
const EXCLUDED = ['SC1090', 'SC1091', 'SC2034', 'SC2148', 'SC2154'];

/** Splits a list into parts of at most `size`. */
export function batches<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size));
}

interface Output {
  readonly text: string;
  /** The program is not installed. */
  readonly absent: boolean;
}

async function run(program: string, args: readonly string[], options: ShellOptions): Promise<Output> {
  const { searchPath, signal } = options;
  const env = { PATH: searchPath, LC_ALL: 'C.UTF-8' };
  return tryProgram(program, args, { env, outputLimit: OUTPUT_LIMIT, signal }, ({ stdout, error }) => {
    if (error?.problem === 'unusable') {
      throw new CurlewError('PROGRAM_FAILED', `cannot start ${program}: ${errnoOf(error.cause)}`, {
        hint: `check that ${program} and the current folder are accessible to this user`,
      });
    }
    return { text: stdout, absent: error?.problem === 'missing' };
  });
}

/** Runs `bash -n` on scripts, in one process. At most one finding per script: bash stops at the first error. */
export async function checkSyntax(scripts: readonly Script[], options: ShellOptions): Promise<readonly Diagnostic[]> {
  if (scripts.length === 0) return [];
  const { text, absent } = await run('bash', ['-c', CHECK_EACH, 'bash', ...scripts.map(({ path }) => path)], options);
  if (absent) {
    throw new CurlewError('UNSUPPORTED', 'cannot check install.sh: bash is not installed', { hint: 'install bash' });
  }
  const records = text.split(/^\u001e(\d+)\n/m);
  return scripts.flatMap((script, index) => {
    const [output, status] = [records[index * 2], records[index * 2 + 1]];
    return status === '0' ? [] : [syntaxFinding(script, output ?? '', status)];
  });
}

/** Parses `PATH: line N: message`, as bash prints it in the C locale. */
function syntaxFinding({ path, shown, text }: Script, output: string, status: string | undefined): Diagnostic {
  const start = { file: shown, line: 1, column: 1, length: 1 };
  if (status === undefined) return finding('install/syntax', start, 'the output of bash -n is too long');
  const first = output.split('\n').find((line) => line.startsWith(`${path}: line `)) ?? output.trim();
  const [, number, message = first] = /^line (\d+): ([^]*)$/.exec(first.slice(path.length + 2)) ?? [];
  const lines = text.split('\n');
  // An error at the end of the text has the line after the last one.
  const line = Math.min(Number(number ?? 1), lines.length);
  const source = lines[line - 1] ?? '';
  const column = source.length - source.trimStart().length + 1;
  const length = Math.max(1, source.trimEnd().length - column + 1);
  return finding(
    'install/syntax',
    { file: shown, line, column: source.trim() === '' ? 1 : column, length },
    shortened(message, 300),
  );
}

interface Comment {
  readonly file: string;
  readonly line: number;
  readonly endLine: number;
  readonly column: number;
  readonly endColumn: number;
  readonly level: string;
  readonly code: number;
  readonly message: string;
}

/** Runs shellcheck on scripts; undefined if it is not installed. */
export async function runShellcheck(
  scripts: readonly Script[],
  options: ShellOptions,
): Promise<readonly Diagnostic[] | undefined> {
  const byPath = new Map(scripts.map((script) => [script.path, script]));
  const args = ['--format=json1', '--shell=bash', '--severity=warning', `--exclude=${EXCLUDED.join(',')}`, '--'];
  const results = await mapLimited(
    batches(scripts, SHELLCHECK_BATCH),
    async (batch, { signal }) => {
      const { text, absent } = await run('shellcheck', [...args, ...batch.map(({ path }) => path)], {
        ...options,
        signal,
      });
      return absent ? undefined : readComments(text);
    },
    { width: availableParallelism(), signal: options.signal },
  );
  if (results.includes(undefined)) return undefined;
  return results.flatMap((comments) =>
    (comments ?? []).flatMap((comment) => {
      const script = byPath.get(comment.file);
      return script === undefined ? [] : [commentFinding(comment, script)];
    }),
  );
}

function readComments(text: string): readonly Comment[] {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && 'comments' in value && Array.isArray(value.comments)) {
      return value.comments as readonly Comment[];
    }
  } catch (error) {
    throw new CurlewError('UNSUPPORTED', 'cannot read the output of shellcheck: not in json1 format', {
      hint: 'use shellcheck 0.7 or newer, or --no-shellcheck',
      cause: error,
    });
  }
  throw new CurlewError('UNSUPPORTED', 'cannot read the output of shellcheck: no list of comments');
}

/** shellcheck counts columns in code points; places count UTF-16 code units. */
function toCodeUnits(line: string, column: number): number {
  return (
    Array.from(line)
      .slice(0, column - 1)
      .join('').length + 1
  );
}

function commentFinding(comment: Comment, { shown, text }: Script): Diagnostic {
  const { line, endLine, level, code, message } = comment;
  const source = text.split('\n')[line - 1] ?? '';
  const column = toCodeUnits(source, comment.column);
  const end = line === endLine ? toCodeUnits(source, comment.endColumn) : column + 1;
  return {
    code: `shellcheck/SC${code}`,
    severity: level === 'error' ? 'error' : 'warning',
    message,
    place: { file: shown, line, column, length: Math.max(1, end - column) },
    hint: undefined,
  };
}
