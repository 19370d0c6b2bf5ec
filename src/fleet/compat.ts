/** What documents of all kinds of a fleet have in common: mistakes, and whose rules they follow. Pure. */
import type { Findings } from '../cluster/channel/findings.ts';
import { isObject } from '../core/json.ts';
import type { Problem } from '../core/schema.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import type { Rules } from './rollout/limits.ts';
import type { WrittenAddon } from './fleet.ts';
import { UNLIKE_CAAPH } from './upstream/helm-chart-proxy.ts';
import { UNLIKE_OCM } from './upstream/rollout-strategy.ts';

export function addProblems(problems: readonly Problem[], findings: Findings): Findings {
  for (const { path, message, hint, issue } of problems) {
    const [what = ''] = issue.message.split('\n');
    const isWrong = issue.type !== 'never' && issue.received !== 'undefined';
    const text = isWrong ? `${message.slice(0, -what.length - 2)} must be ${what}` : message;
    findings.error(issue.type === 'never' ? 'unknown-field' : 'value', path, text, hint);
  }
  return findings;
}

const COMPAT = 'curlew.dev/compat';
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

const UNLIKE = {
  FleetAddon: ['native', []],
  HelmChartProxy: ['caaph', UNLIKE_CAAPH],
  ClusterManagementAddOn: ['ocm', UNLIKE_OCM],
} as const;

/**
 * How the rules of curlew differ from those of the program that documents are from: each difference once, at the first document of
 * its kind without the annotation that selects the rules.
 */
export function differencesIn(addons: readonly WrittenAddon[]): readonly Diagnostic[] {
  const unsaid = addons.filter(({ compat }) => compat === undefined);
  const first = [...new Map(unsaid.toReversed().map((one) => [one.kind, one])).values()].toReversed();
  return first.flatMap(({ kind, findings }) => {
    const [rules, all] = UNLIKE[kind];
    const place = findings.placeOf(['kind']);
    const hint = `${COMPAT}: ${rules} selects the rules of that program, ${COMPAT}: native those of curlew without this message`;
    return all.map((message, at): Diagnostic => {
      return { code: 'fleet/rules', severity: 'info', message, place, hint: at === all.length - 1 ? hint : undefined };
    });
  });
}
