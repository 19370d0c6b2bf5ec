/** A channel of 5,000 entries: what is read once, and what each question costs. */
import { choose, explainChoice } from '../../src/cluster/channel/choose.ts';
import { checkChannel } from '../../src/cluster/channel/check.ts';
import { planUpgrade } from '../../src/cluster/channel/upgrade-plan.ts';
import { readChannel } from '../../src/cluster/channel/read.ts';
import type { Options } from './images.ts';
import { spread } from './measure.ts';
import { range, type Section } from './report.ts';

const ENTRIES = 5000;
const ADDONS = 50;
const KUBERNETES = ['v1.30.2', 'v1.31.4', 'v1.32.1', 'v1.33.0', 'v1.34.1', 'v1.35.0'];

/** Versions of each add-on, of which each fits three minors, in the manner of an index that has grown for years. */
function channelText(addons: number): string {
  const versions = ENTRIES / addons;
  const entries = Array.from({ length: ENTRIES }, (_, at) => {
    const [addon, version] = [at % addons, Math.floor(at / addons)];
    const minor = 5 + Math.floor((version * 30) / versions);
    return `  - name: addon-${addon}
    version: 1.${version}.0
    kubernetesVersion: ">=1.${minor}.0 <1.${minor + 3}.0"
    manifest: addon-${addon}/${version}.yaml
    hash: sha256:${String(at).padStart(64, '0')}
`;
  });
  const head = 'apiVersion: fleet.curlew.dev/v1alpha1\nkind: Channel\nmetadata: {name: bench}\nspec:\n  addons:\n';
  return head + entries.join('');
}

function timed(work: () => unknown): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}

export function benchChannel({ rounds, say }: Options): Section {
  const rows = [
    ['of one add-on', channelText(1)],
    [`of ${ADDONS} add-ons`, channelText(ADDONS)],
  ] as const;
  const found = rows.map(([title, text]) => {
    const { channel } = readChannel('bench.yaml', text);
    if (channel === undefined) throw new Error('the channel of the bench is wrong');
    const { entries } = channel;
    const compat = 'native';
    const kubernetes = [1, 30, 2] as const;
    // What fits the first version of Kubernetes is installed.
    const installed = choose(entries, kubernetes, compat);
    const times = { read: [], questions: [], check: [] } as Record<'read' | 'questions' | 'check', number[]>;
    for (let round = 0; round < rounds; round += 1) {
      times.read.push(timed(() => readChannel('bench.yaml', text)));
      times.questions.push(
        timed(() => {
          explainChoice(entries, { addon: 'addon-0', kubernetes, compat });
          return planUpgrade(entries, { kubernetes: KUBERNETES, installed, compat });
        }),
      );
      times.check.push(timed(() => checkChannel(channel)));
    }
    return { title, read: spread(times.read), questions: spread(times.questions), check: spread(times.check) };
  });
  say('channel measured');
  return {
    title: 'Channels',
    about: `A channel of ${ENTRIES} entries, read; an add-on explained and an upgrade of Kubernetes over five minors planned; all of it checked.`,
    table: [
      ['what', ...found.map(({ title }) => `milliseconds, ${title}`)],
      ['read', ...found.map(({ read }) => range(read))],
      ['explain and plan', ...found.map(({ questions }) => range(questions))],
      ['check', ...found.map(({ check }) => range(check))],
    ],
    targets: found.map(({ title, questions }) => ({
      name: `explain and plan, ${title}`,
      wanted: '< 300 ms',
      measured: `${range(questions)} ms`,
      met: questions.median < 300,
    })),
  };
}
