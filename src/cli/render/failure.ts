/** A failure as text: for people a message, its causes and a hint; for machines one JSON object. */
import { dirname } from 'node:path';
import { counted } from '../../core/counted.ts';
import { CurlewError, errnoOf, redact, type ErrorCode } from '../../core/errors.ts';
import { renderDiagnostic, visible } from '../../core/diagnostic.ts';
import { paintDiagnostic, type Paint } from './paint.ts';

const MOST_CAUSES = 5;
/** What the system says: `ENOENT: no such file or directory, open '/etc/x'`. */
const SYSTEM_ERROR = /\bE[A-Z0-9]+: ([^,:\n]+), [a-z]+(?: '([^'\n]*)')?(?: -> '[^'\n]*')?/g;
/** Codes whose messages say all that the system's error says. */
const SELF_EXPLAINED: ReadonlySet<ErrorCode> = new Set(['NOT_FOUND', 'NO_SPACE', 'FILE_EXISTS']);

function causes(error: CurlewError): readonly string[] {
  const found: string[] = [];
  let cause = error.cause;
  while (cause instanceof Error && found.length < MOST_CAUSES) {
    const known = errnoOf(cause)?.startsWith('E') === true && SELF_EXPLAINED.has(error.code);
    // A cause whose words stand in the message already would only be read twice.
    if (cause.message !== '' && !known && !error.message.includes(cause.message)) found.push(redact(cause.message));
    cause = cause.cause;
  }
  return found;
}

/** Keeps the words of the system's errors, and their path where the rest of the text does not name it. */
function withoutErrno(text: string): string {
  return text.replaceAll(SYSTEM_ERROR, (whole, words: string, path: string | undefined) => {
    const rest = text.replace(whole, '');
    if (path === undefined) return words;
    // A partial file stands beside the one that is named, and people name files from where they are.
    const beside = dirname(path).length > 1 && rest.includes(dirname(path));
    const named = beside || rest.split(/[\s:]+/).some((word) => word !== '' && `/${path}`.endsWith(`/${word}`));
    return named ? words : `${words}: ${path}`;
  });
}

function multiline(text: string): string {
  return withoutErrno(text).split('\n').map(visible).join('\n  ');
}

/** A bug, an error that is not a CurlewError, shows its stack; what a user can meet shows none. */
export function renderFailure(error: Error, paint: Paint): string {
  if (!(error instanceof CurlewError)) {
    const text = redact(error.stack ?? error.message);
    return `curlew: unexpected error, this is a bug: please report it with this text\n${text}`;
  }
  const { code, message, hint, diagnostics } = error;
  if (code === 'CANCELLED') {
    const next = hint === undefined ? '' : `\n  ${paint.hint('hint:')} ${multiline(hint)}`;
    return `${multiline(message)}${next}`;
  }
  const lines = diagnostics.map((found) => paintDiagnostic(renderDiagnostic(found, undefined), found.severity, paint));
  const findings = new Set(diagnostics.map((found) => found.message));
  // Findings that make up the whole message have been read already.
  const told = findings.size > 0 && message === [...findings].join('; ');
  const said = told ? counted(diagnostics.length, 'mistake') : multiline(message);
  lines.push(`${paint.error(`error ${code}:`)} ${said}`);
  for (const cause of causes(error)) lines.push(`  because: ${multiline(cause)}`);
  const hinted = diagnostics.some((found) => found.hint === hint);
  if (hint !== undefined && !hinted) lines.push(`  ${paint.hint('hint:')} ${multiline(hint)}`);
  return lines.join('\n');
}

/** The same for machines: what `--json` prints in place of a result. */
export function failureJson(error: Error): object {
  if (!(error instanceof CurlewError)) return { error: { code: 'BUG', message: redact(error.message) } };
  const { code, message, hint, diagnostics } = error;
  return { error: { code, message, hint, causes: causes(error), diagnostics } };
}
