/** `curlew bundle`: one file with everything that an installer spec names. */
import { summarise, type PlanSummary } from '../../bundle/plan.ts';
import { BUNDLE_PLAN_OPTIONS, openPlan } from '../bundle-plan.ts';
import { bundleTarget, BUNDLE_TARGET_OPTIONS, STANDARD_OUTPUT, type Written } from '../bundle-target.ts';
import type { Command } from '../command.ts';
import { renderBundle } from '../render/bundle.ts';

interface Result extends PlanSummary {
  /** Undefined when only the plan was asked for. */
  readonly file: Written;
  /** Of the table of contents: what a signature covers. */
  readonly tocDigest: string;
}

export const bundle: Command<Result> = {
  name: 'bundle',
  summary: 'Put all packages of an installer spec into one file',
  operands: 'installer.yaml',
  options: { ...BUNDLE_TARGET_OPTIONS, ...BUNDLE_PLAN_OPTIONS },
  details:
    'The bundle is made of byte ranges of the packages as they are: nothing is packed again. It brings its own curlew: ' +
    'on the node, tar and the install.sh in it are enough.',
  examples: [
    'curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz',
    'curlew bundle installer.yaml --from /srv/dist -o - | ssh node1 tar -xz',
    'curlew bundle installer.yaml --from /srv/dist --plan',
  ],
  run: async (args, context) => {
    const write = bundleTarget(args, context);
    await using open = await openPlan(args, context);
    const file = await write(open);
    return { file, tocDigest: open.plan.splice.index.tocDigest, ...summarise(open.plan) };
  },
  carriesBytes: (args) => args.text('output') === STANDARD_OUTPUT && !args.flag('plan'),
  render: ({ file, ...summary }) => renderBundle(file, summary),
};
