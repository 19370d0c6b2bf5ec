/** What a schema refuses in a document -> findings. Pure. */
import type { Findings } from '../channel/findings.ts';
import type { Problem } from '../core/schema.ts';

export function reported(problems: readonly Problem[], found: Findings): Findings {
  for (const { path, message, hint, issue } of problems) {
    const [what = ''] = issue.message.split('\n');
    const isWrong = issue.type !== 'never' && issue.received !== 'undefined';
    const text = isWrong ? `${message.slice(0, -what.length - 2)} must be ${what}` : message;
    found.error(issue.type === 'never' ? 'unknown-field' : 'value', path, text, hint);
  }
  return found;
}
