/** Values of add-ons that cannot be rendered, as far as the files of a fleet tell. Pure. */
import { firstOf } from '../core/counted.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { groupBy } from '../core/group-by.ts';
import type { WrittenFleet } from './fleet.ts';
import { addonOf, clusterOf } from './observe.ts';
import { Contents, Memo } from './rollout/content.ts';
import { selects } from './rollout/groups.ts';

const MAX_NAMES = 3;

/** One error for each add-on and reason. What depends on the answer of a cluster is none. */
export function unrenderedIn(fleet: WrittenFleet): readonly Diagnostic[] {
  const clusters = fleet.clusters.map((one) => clusterOf(one));
  return fleet.addons.flatMap((written) => {
    const { fields, findings } = written;
    // Contents are not compared.
    const contents = new Contents(
      addonOf(written, fleet, () => ''),
      new Memo(),
    );
    const wrong = clusters.flatMap((cluster) => {
      const why = selects(fields.spec.clusterSelector, cluster.labels) ? contents.problemUnasked(cluster) : undefined;
      return why === undefined ? [] : [{ why, name: cluster.name }];
    });
    const hasTemplate = fields.spec.valuesTemplate !== undefined;
    const place = findings.placeOf(['spec', hasTemplate ? 'valuesTemplate' : 'source']);
    return [...groupBy(wrong, ({ why }) => why)].map(([why, all]): Diagnostic => {
      const message = `${why} (${firstOf(
        all.map(({ name }) => name),
        MAX_NAMES,
      )})`;
      return { code: 'fleet/template', severity: 'error', message, place, hint: undefined };
    });
  });
}
