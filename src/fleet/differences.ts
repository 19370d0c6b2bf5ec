/** Whose rules the add-ons of a fleet follow that are documents of other programs. Pure. */
import type { Diagnostic } from '../core/diagnostic.ts';
import type { WrittenAddon } from './fleet.ts';
import { COMPAT } from './upstream/document.ts';

/** The rules of the program that a document is from, and the page that compares them. */
const UNLIKE = {
  HelmChartProxy: ['caaph', 'docs/from-helm-chart-proxy.md'],
  ClusterManagementAddOn: ['ocm', 'docs/from-open-cluster-management.md'],
} as const;

/** One for all add-ons without the annotation that selects the rules, at the first of them; none without such an add-on. */
export function differencesIn(addons: readonly WrittenAddon[]): readonly Diagnostic[] {
  const unsaid = addons.flatMap(({ kind, compat, findings }) =>
    kind === 'FleetAddon' || compat !== undefined ? [] : [{ kind, findings }],
  );
  const [first] = unsaid;
  if (first === undefined) return [];
  const kinds = [...new Set(unsaid.map(({ kind }) => kind))];
  const message = `each ${kinds.join(' and each ')} without the annotation ${COMPAT} follows the rules of curlew`;
  const ways = kinds.map(
    (kind) => `curlew help ${UNLIKE[kind][1]} compares them with those of ${COMPAT}: ${UNLIKE[kind][0]}`,
  );
  const hint = `${ways.join('; ')}; ${COMPAT}: native keeps them without this message`;
  return [{ code: 'fleet/rules', severity: 'info', message, place: first.findings.placeOf(['kind']), hint }];
}
