/** How the rules of curlew differ from those of the programs that documents of a fleet are from. Pure. */
import type { Diagnostic } from '../core/diagnostic.ts';
import type { WrittenAddon } from './fleet.ts';
import { COMPAT } from './upstream/document.ts';
import { UNLIKE_CAAPH } from './upstream/helm-chart-proxy.ts';
import { UNLIKE_OCM } from './upstream/rollout-strategy.ts';

const UNLIKE = {
  FleetAddon: ['native', []],
  HelmChartProxy: ['caaph', UNLIKE_CAAPH],
  ClusterManagementAddOn: ['ocm', UNLIKE_OCM],
} as const;

/** Each difference once, at the first document of its kind without the annotation that selects the rules. */
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
