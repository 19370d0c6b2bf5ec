/** `curlew bundle`: one file with everything that an installer spec names. */
import { summarise, type PlanSummary } from '../../bundle/plan.ts';
import type { NotCurrent } from '../../store/release/signed-release.ts';
import { BUNDLE_PLAN_OPTIONS, openPlan } from '../bundle-plan.ts';
import { bundleTarget, BUNDLE_TARGET_OPTIONS, type Written } from '../bundle-target.ts';
import type { Command } from '../command.ts';
import { STANDARD_OUTPUT } from '../output.ts';
import { renderBundle } from '../render/bundle.ts';
import { SINCE_OPTION, sincePlan } from '../since.ts';

interface Result extends PlanSummary, Written {
  /** Of the table of contents: what a signature covers. */
  readonly tocDigest: string;
  /** What the store says against the release that was named; absent when it says nothing. */
  readonly notCurrent?: NotCurrent | undefined;
}

export const bundle: Command<Result> = {
  name: 'bundle',
  summary: 'Put all packages of an installer spec into one file',
  operands: '[installer.yaml]',
  options: { ...BUNDLE_TARGET_OPTIONS, ...BUNDLE_PLAN_OPTIONS, ...SINCE_OPTION },
  details:
    'The bundle is made of byte ranges of the packages as they are: nothing is packed again. It brings its own curlew: ' +
    'on the node, tar and the install.sh in it are enough.\n\n' +
    'A saved plan can be looked at, compared with another one, and carried out later and elsewhere: the bytes are the ' +
    'same. Where a package has changed since, nothing is written.',
  examples: [
    'curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz',
    'curlew bundle installer.yaml --from /srv/dist --to /media/one,/media/two',
    'curlew bundle installer.yaml --from /srv/dist -o - | ssh node1 tar -xz',
    'curlew bundle installer.yaml --from /srv/dist --plan --out plan.json',
    'curlew bundle installer.yaml --from /srv/dist --plan --against plan.json',
    'curlew bundle --from-plan plan.json --from /srv/dist -o bundle.tar.gz',
    'curlew bundle installer.yaml --from /srv/dist --since site.json -o d.tar.gz',
    'curlew bundle installer.yaml --from s3://a/dist -o s3://a/bundles/b.tar.gz',
  ],
  run: async (args, context) => {
    const write = await bundleTarget(args, context);
    await using open = await openPlan(args, context);
    const plan = await sincePlan(open.plan, args, context);
    const { notCurrent } = open;
    const result = { ...(await write({ ...open, plan })), tocDigest: plan.splice.index.tocDigest, ...summarise(plan) };
    return notCurrent === undefined ? result : { ...result, notCurrent };
  },
  carriesBytes: (args) => args.text('output') === STANDARD_OUTPUT && !args.flag('plan'),
  render: (result) => renderBundle(result, result),
};
