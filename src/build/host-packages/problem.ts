/** Converts a script's failure to one error, with the package manager's reason in a few lines, not its whole log. */
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact, type ErrorCode } from '../../core/errors.ts';
import { quoteLines } from '../../platform/process/program-lines.ts';

const SHOWN = 8;
const WIDTH = 300;

interface Kind {
  readonly code: ErrorCode;
  readonly headline: (problems: readonly (readonly string[])[]) => string;
  /** Formats a problem as a line below the headline; absent if the headline includes it. */
  readonly line?: (problem: readonly string[]) => string;
  readonly hint: string;
}

const place = ([url = '', text = '']: readonly string[]): string => (url === '-' ? text : `${url}: ${text}`);

/** One row for each kind of line in `result/problem`; the first kind that occurs determines the code and the hint. */
const KINDS: Readonly<Record<string, Kind>> = {
  tool: {
    code: 'UNSUPPORTED',
    headline: (problems) => `a program is missing: ${problems.map(([program = '']) => program).join(', ')}`,
    hint: 'install it there, or use the other backend',
  },
  full: {
    code: 'NO_SPACE',
    headline: () => 'no space left',
    hint: 'free some space or use another folder, then run the same command again',
  },
  signature: {
    code: 'SIGNATURE_INVALID',
    headline: () => 'a repository is not signed with its configured key',
    line: place,
    hint: 'check that this is the intended repository, and configure its key ring or key',
  },
  untimely: {
    code: 'FETCH_FAILED',
    headline: () => 'a repository is too old or too new for the clock of this machine',
    line: place,
    hint: 'set the clock if it is wrong; if it is right, the mirror is no longer updated: use another one',
  },
  repository: {
    code: 'FETCH_FAILED',
    headline: () => 'a repository cannot be read',
    line: place,
    hint: 'check its address, the proxy and the certificate authorities, then run the same command again',
  },
  changed: {
    code: 'DIGEST_MISMATCH',
    headline: () => 'a repository, or a proxy in between, changed while it was read',
    line: place,
    hint: 'run the same command again; if it fails again, use another mirror',
  },
  missing: {
    code: 'PACKAGES_UNRESOLVED',
    headline: (problems) => `no such package: ${problems.map(([name = '']) => name).join(', ')}`,
    hint: 'correct the name in the Manifest, or add the repository that has it',
  },
  conflict: {
    code: 'PACKAGES_UNRESOLVED',
    headline: () => 'the packages cannot be installed together',
    line: ([text = '']) => text,
    hint: 'remove one of them, or request a version that fits the others',
  },
};

/** Suggestions for missing names, best first. */
function nearHints(near: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(near.map(([name = '']) => name))].map((name) => {
    const others = near.filter(([missing]) => missing === name).map(([, other = '']) => other);
    return `instead of ${name}, did you mean ${others.slice(0, 3).join(' or ')}?`;
  });
}

/** Messages of programs about a full disk, on which `result/problem` may not have been written. */
const FULL = /No space left on device|Disk quota exceeded|enough free space/i;

/**
 * The error for a failed script. `text` is its `result/problem`, undefined if it does not exist; `last` are its last lines of
 * output, for other failures. Both are untrusted.
 */
export function problemError(
  text: string | undefined,
  { doing, last }: { readonly doing: string; readonly last: readonly string[] },
): CurlewError {
  const rows = (text ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t').map((field) => visible(redact(field)).slice(0, WIDTH)));
  const of = (kind: string): readonly (readonly string[])[] =>
    rows.filter(([word]) => word === kind).map(([, ...fields]) => fields);
  const match = Object.entries(KINDS).find(([kind]) => of(kind).length > 0);
  if (match === undefined) {
    const kind = last.some((line) => FULL.test(line)) ? KINDS['full'] : undefined;
    const message = `cannot ${doing}: ${kind?.headline([]) ?? 'the package manager failed'}`;
    if (kind !== undefined) return new CurlewError(kind.code, message, { hint: kind.hint });
    return new CurlewError('FETCH_FAILED', `${message}${quoteLines(last.slice(-SHOWN).map(visible))}`);
  }
  const [word, { code, headline, line, hint }] = match;
  const problems = of(word);
  const lines = line === undefined ? [] : problems.slice(0, SHOWN).map(line);
  const hints = word === 'missing' ? nearHints(of('near')) : [];
  return new CurlewError(code, `cannot ${doing}: ${headline(problems)}${quoteLines(lines)}`, {
    hint: hints.length === 0 ? hint : hints.join('; '),
  });
}
