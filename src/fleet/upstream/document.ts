/** What documents of all kinds of a fleet have in common: mistakes, and whose rules they follow. Pure. */
import type { Findings } from '../../cluster/channel/findings.ts';
import { isObject } from '../../core/json.ts';
import type { Problem } from '../../core/schema.ts';
import type { Rules } from '../rollout/limits.ts';

export function addProblems(problems: readonly Problem[], findings: Findings): Findings {
  for (const { path, message, hint, issue } of problems) {
    const [what = ''] = issue.message.split('\n');
    const isWrong = issue.type !== 'never' && issue.received !== 'undefined';
    const text = isWrong ? `${message.slice(0, -what.length - 2)} must be ${what}` : message;
    findings.error(issue.type === 'never' ? 'unknown-field' : 'value', path, text, hint);
  }
  return findings;
}

/** Annotation that says whose rules an add-on follows. */
export const COMPAT = 'curlew.dev/compat';
const RULES: readonly Rules[] = ['caaph', 'ocm', 'native'];

/** Undefined without the annotation. */
export function compatOf(document: unknown, findings: Findings): Rules | undefined {
  const path = ['metadata', 'annotations', COMPAT];
  const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), document);
  const rules = RULES.find((one) => one === value);
  if (value !== undefined && rules === undefined)
    findings.error('compat', path, `${COMPAT} must be one of ${RULES.join(', ')}`);
  return rules;
}
