/** A failure as text: for people a message, its causes and a hint; for machines one JSON object. */
import { CurlewError, redact } from '../../core/errors.ts';
import { renderDiagnostic, visible } from '../../core/diagnostic.ts';

const MOST_CAUSES = 5;

function causes(error: Error): readonly string[] {
  const found: string[] = [];
  let cause = error.cause;
  while (cause instanceof Error && found.length < MOST_CAUSES) {
    // A cause whose words stand in the message already would only be read twice.
    if (cause.message !== '' && !error.message.includes(cause.message)) found.push(redact(cause.message));
    cause = cause.cause;
  }
  return found;
}

function multiline(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

/** A bug, an error that is not a CurlewError, shows its stack; what a user can meet shows none. */
export function renderFailure(error: Error, { json }: { readonly json: boolean }): string {
  if (!(error instanceof CurlewError)) {
    const text = redact(error.stack ?? error.message);
    return json
      ? JSON.stringify({ error: { code: 'BUG', message: redact(error.message) } })
      : `curlew: unexpected error, this is a bug: please report it with this text\n${text}`;
  }
  const { code, message, hint, diagnostics } = error;
  if (json) return JSON.stringify({ error: { code, message, hint, causes: causes(error), diagnostics } });
  const lines = diagnostics.map((diagnostic) => renderDiagnostic(diagnostic, undefined));
  lines.push(`error ${code}: ${multiline(message)}`);
  for (const cause of causes(error)) lines.push(`  because: ${multiline(cause)}`);
  if (hint !== undefined) lines.push(`  hint: ${multiline(hint)}`);
  return lines.join('\n');
}
