/** Renders a failure: as message, causes and hint for people, or as one JSON object. */
import { dirname } from 'node:path';
import { counted } from '../../core/counted.ts';
import { CurlewError, errnoOf, redact, type ErrorCode } from '../../core/errors.ts';
import { renderDiagnostic, visible } from '../../core/diagnostic.ts';
import { paintDiagnostic, type Paint } from './paint.ts';

const MAX_CAUSES = 5;
/** A system error: `ENOENT: no such file or directory, open '/etc/x'`. */
const SYSTEM_ERROR = /\bE[A-Z0-9]+: ([^,:\n]+), [a-z_]+(?: '([^'\n]*)')?(?: -> '[^'\n]*')?/g;
/** Codes whose messages already contain the system's error. */
const SELF_EXPLAINED: ReadonlySet<ErrorCode> = new Set(['NOT_FOUND', 'NO_SPACE', 'FILE_EXISTS']);

function causes(error: CurlewError): readonly string[] {
  const messages: string[] = [];
  let cause = error.cause;
  while (cause instanceof Error && messages.length < MAX_CAUSES) {
    const known = errnoOf(cause)?.startsWith('E') === true && SELF_EXPLAINED.has(error.code);
    // A cause that is already part of the message is not repeated.
    if (cause.message !== '' && !known && !error.message.includes(cause.message)) messages.push(redact(cause.message));
    cause = cause.cause;
  }
  return messages;
}

/** Reduces system errors to their description, with the path if the rest of the text does not contain it. */
function withoutErrno(text: string): string {
  return text.replaceAll(SYSTEM_ERROR, (whole, description: string, path: string | undefined) => {
    const rest = text.replace(whole, '');
    if (path === undefined) return description;
    // A partial file is in the folder of the named file, and users name files relative to the current folder.
    const sameFolder = dirname(path).length > 1 && rest.includes(dirname(path));
    const named = sameFolder || rest.split(/[\s:]+/).some((word) => word !== '' && `/${path}`.endsWith(`/${word}`));
    return named ? description : `${description}: ${path}`;
  });
}

function multiline(text: string): string {
  return withoutErrno(text).split('\n').map(visible).join('\n  ');
}

/** Renders an error. A bug, which is an error that is not a CurlewError, shows its stack. */
export function renderFailure(error: Error, paint: Paint): string {
  if (!(error instanceof CurlewError)) {
    const text = redact(error.stack ?? error.message);
    return `curlew: unexpected error. This is a bug: please report it with this text\n${text}`;
  }
  const { code, message, hint, diagnostics } = error;
  if (code === 'CANCELLED') {
    const next = hint === undefined ? '' : `\n  ${paint.hint('hint:')} ${multiline(hint)}`;
    return `${multiline(message)}${next}`;
  }
  const lines = diagnostics.map((found) => paintDiagnostic(renderDiagnostic(found, undefined), found.severity, paint));
  const findings = new Set(diagnostics.map((found) => found.message));
  // If the message only repeats the findings above, show their number.
  const isRepeated = findings.size > 0 && message === [...findings].join('; ');
  const text = isRepeated ? counted(diagnostics.length, 'mistake') : multiline(message);
  lines.push(`${paint.error(`error ${code}:`)} ${text}`);
  for (const cause of causes(error)) lines.push(`  because: ${multiline(cause)}`);
  const hinted = diagnostics.some((found) => found.hint === hint);
  if (hint !== undefined && !hinted) lines.push(`  ${paint.hint('hint:')} ${multiline(hint)}`);
  return lines.join('\n');
}

/** The error document that `--json` prints instead of a result. */
export function failureJson(error: Error): object {
  if (!(error instanceof CurlewError)) return { error: { code: 'BUG', message: redact(error.message) } };
  const { code, message, hint, diagnostics } = error;
  return { error: { code, message, hint, causes: causes(error), diagnostics } };
}
