import * as fc from 'fast-check';
import type { Candidate, Requirement } from '../../../src/cluster/channel/channel.ts';
import { runsOn } from '../../../src/cluster/channel/choose.ts';
import { kubernetesSteps, planUpgrade, type UpgradePlan } from '../../../src/cluster/channel/upgrade-plan.ts';
import { parseRange, parseTriple } from '../../../src/cluster/channel/range.ts';
import { compareVersions } from '../../../src/core/ref.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('cluster/channel/upgrade-plan');

type Entry = Candidate & { readonly requires?: readonly Requirement[] };

const entry = (name: string, version: string, range = '', requires: Readonly<Record<string, string>> = {}): Entry => ({
  name,
  version,
  range: parseRange(range, 'native').range,
  requires: Object.entries(requires).map(([other, text]) => ({
    name: other,
    version: text,
    range: parseRange(text, 'native').range,
  })),
});

const MINORS = ['v1.30.0', 'v1.31.0', 'v1.32.0'];

function plan(
  entries: readonly Entry[],
  installed: Readonly<Record<string, string>>,
  more: object = {},
): UpgradePlan<Entry> {
  const identities = Object.entries(installed).map(([name, version]) => [name, { version }] as const);
  return planUpgrade(entries, { kubernetes: MINORS, installed: new Map(identities), compat: 'native', ...more });
}

const steps = ({ steps: all }: UpgradePlan<Entry>) =>
  all.map((step) => (step.type === 'addon' ? `${step.addon} ${step.entry.version ?? ''}` : step.version));

test('a gap names the step and the entries that nearly fit, and nothing is planned', () => {
  const entries = [
    entry('a', '1.0.0', '<1.31.0'),
    entry('a', '0.9.0', '>=1.30.0 <1.33.0'),
    entry('a', '2.0.0', '>=1.31.0'),
    entry('a', '0.5.0', '<1.29.0'),
    entry('b', '1.0.0'),
  ];
  const { gaps, steps: none } = plan(entries, { a: '1.0.0', b: '1.0.0' });
  assert.equal(none, []);
  assert.equal(
    gaps.map(({ message, near }) => [
      message,
      ...near.map((one) => `${one.fits} ${one.entry.version ?? ''}: ${one.because}`),
    ]),
    [
      [
        'gap at v1.31.0: a 1.0.0 does not fit it, and no version to move to fits v1.30.0 as well',
        'both 0.9.0: it is lower than the installed 1.0.0',
        'new 2.0.0: it is for Kubernetes >=1.31.0, not v1.30.0',
        'old 1.0.0: it is for Kubernetes <1.31.0, not v1.31.0',
      ],
    ],
  );
  assert.equal(steps(plan(entries, { a: '1.0.0' }, { allowDowngrade: true })), [
    'a 0.9.0',
    'v1.31.0',
    'v1.32.0',
    'a 2.0.0',
  ]);
});

test('ranges that meet are a gap; if it is allowed, the add-on moves right after the step, and the step and the move say so', () => {
  const entries = [
    entry('dns', '1.6.0', '<1.31.0'),
    entry('dns', '1.7.0', '>=1.31.0 <1.32.0'),
    entry('dns', '1.8.0', '>=1.32.0'),
    entry('web', '1.0.0', '', { dns: '>=1.7.0' }),
  ];
  const [gap] = plan(entries, { dns: '1.6.0' }).gaps;
  assert.is(
    gap?.hint,
    'if it runs there, let the range of dns 1.7.0 include v1.30.0, or let the range of dns 1.6.0 include v1.31.0; --allow-gap moves dns right after the step, as kops does',
  );
  const passed = plan(entries, { dns: '1.6.0' }, { allowGap: true });
  assert.equal(steps(passed), ['v1.31.0', 'dns 1.7.0', 'v1.32.0', 'dns 1.8.0']);
  assert.equal(
    passed.steps.flatMap((step) => (step.type === 'addon' ? [[step.afterGap, step.because]] : [])),
    ['v1.31.0', 'v1.32.0'].map((at) => [true, `GAP: until now, what is installed does not fit ${at}`]),
  );
  const none = plan([entry('dns', '1.6.0', '<1.31.0')], { dns: '1.6.0' }, { allowGap: true });
  assert.equal(
    none.gaps.map(({ at, hint }) => [at, hint]),
    [['v1.31.0', 'if it runs there, let the range of dns 1.6.0 include v1.31.0']],
  );
});

test('the newest version is passed over where nothing follows it', () => {
  const entries = [entry('a', '1.0.0', '<1.31.0'), entry('a', '2.0.0', '<1.33.0'), entry('a', '3.0.0', '<1.32.0')];
  assert.equal(steps(plan(entries, { a: '1.0.0' })), ['a 2.0.0', 'v1.31.0', 'v1.32.0']);
});

test('add-ons that others require move first, and a requirement that is not met is a gap', () => {
  const entries = [
    entry('a', '1.0.0', '<1.31.0'),
    entry('a', '2.0.0', '', { b: '>=2.0.0' }),
    entry('b', '1.0.0', '<1.31.0'),
    entry('b', '2.0.0'),
  ];
  assert.equal(steps(plan(entries, { a: '1.0.0', b: '1.0.0' })), ['b 2.0.0', 'a 2.0.0', 'v1.31.0', 'v1.32.0']);
  const [gap] = plan(entries, { a: '1.0.0' }).gaps;
  assert.is(gap?.message, 'gap at v1.31.0: a 2.0.0 requires b >=2.0.0, and it is not installed');
  assert.equal(
    gap?.near.map((one) => one.entry.version),
    ['2.0.0'],
  );
});

test('a chain of ten thousand requirements is ordered, and a circle is left as it is', () => {
  const names = Array.from({ length: 10_000 }, (_, at) => `a${at}`);
  const entries = names.map((name, at) => entry(name, '2.0.0', '', { [names[at + 1] ?? name]: '' }));
  const { steps: all } = plan(entries, Object.fromEntries(names.map((name) => [name, '1.0.0'])));
  assert.equal(
    all.slice(0, names.length).map((step) => (step.type === 'addon' ? step.addon : step.version)),
    names.toReversed(),
  );
  const circle = [entry('a', '2.0.0', '', { b: '' }), entry('b', '2.0.0', '', { a: '' })];
  assert.equal(steps(plan(circle, { a: '1.0.0', b: '1.0.0' })).slice(0, 2), ['b 2.0.0', 'a 2.0.0']);
});

test('what is installed is known by its id too, and what the channel does not have is not planned', () => {
  const entries = [
    { ...entry('dns', '1.6.0', '<1.31.0'), id: 'old' },
    { ...entry('dns', '1.6.0', '>=1.31.0'), id: 'new' },
  ];
  const installed = new Map([
    ['dns', { version: '1.6.0', id: 'old' }],
    ['other', { version: '1.0.0' }],
  ]);
  const { gaps, unknown } = planUpgrade(entries, { kubernetes: MINORS, installed, compat: 'native' });
  assert.equal([gaps.map(({ at }) => at), unknown], [['v1.31.0'], ['other']]);
});

test('an installed version that the channel does not have moves before the first step', () => {
  assert.equal(steps(plan([entry('a', '2.0.0')], { a: '1.0.0' })), ['a 2.0.0', 'v1.31.0', 'v1.32.0']);
  assert.equal(
    plan([entry('a', '2.0.0')], { a: '3.0.0' }).gaps.map(({ at }) => at),
    ['v1.31.0'],
  );
});

test('by the rules of kops, ids and hashes decide, and the last fitting entry counts as the newest', () => {
  const entries = [
    { ...entry('a', '9.99.0', '<1.31.0'), version: undefined, hash: 'h1' },
    { ...entry('a', '9.99.0', '>=1.30.0'), version: undefined, hash: 'h2' },
  ];
  const installed = new Map([['a', { hash: 'h1' }]]);
  const { steps: all } = planUpgrade(entries, { kubernetes: MINORS, installed, compat: 'kops' });
  assert.equal(
    all.map((step) => (step.type === 'addon' ? step.entry.hash : step.version)),
    ['h2', 'v1.31.0', 'v1.32.0'],
  );
});

test('Kubernetes is upgraded minor by minor, to the newest patch of each', () => {
  const available = ['v1.31.4', 'v1.31.10', 'v1.32.1', 'v1.30.9', 'v1.33.0'];
  assert.equal(kubernetesSteps('v1.30.2', 'v1.32.x', available), ['v1.30.2', 'v1.31.10', 'v1.32.1']);
  assert.equal(kubernetesSteps('v1.30.2', 'v1.32.0', available), ['v1.30.2', 'v1.31.10', 'v1.32.0']);
  assert.equal(kubernetesSteps('v1.30.2', 'v1.30.x', available), ['v1.30.2', 'v1.30.9']);
  assert.equal(kubernetesSteps('v1.33.0', 'v1.33.x', available), ['v1.33.0']);
  assert.throwsWith(
    () => kubernetesSteps('v1.29.0', 'v1.31.x', ['v1.31.0']),
    'NOT_FOUND',
    /gap at v1\.30: no Kubernetes of this minor/,
  );
  assert.throwsWith(() => kubernetesSteps('v1.31.0', 'v1.30.0', available), 'USAGE', /cannot be upgraded/);
  assert.throwsWith(() => kubernetesSteps('newest', 'v1.30.0', available), 'USAGE', /not a version of Kubernetes/);
});

const versions = fc.constantFrom('1.0.0', '1.1.0', '1.2.0', '2.0.0', '2.1.0');
const minor = fc.integer({ min: 29, max: 34 });
const ranges = fc.tuple(minor, minor).map(([a, b]) => `>=1.${Math.min(a, b)}.0 <1.${Math.max(a, b) + 1}.0`);
const candidates = fc.uniqueArray(fc.tuple(versions, ranges), {
  minLength: 1,
  maxLength: 5,
  selector: ([version]) => version,
});

test('a plan never runs a version on a Kubernetes that it is not for, never moves down, and gaps are real', () => {
  const kubernetes = ['v1.30.0', 'v1.31.0', 'v1.32.0', 'v1.33.0'];
  fc.assert(
    fc.property(candidates, versions, (list, installed) => {
      const entries = list.map(([version, range]) => entry('a', version, range));
      const { steps: all, gaps } = plan(entries, { a: installed }, { kubernetes });
      const isFit = (one: Entry | undefined, at: string): boolean => {
        const triple = parseTriple(at);
        return one !== undefined && triple !== undefined && runsOn(one, triple);
      };
      assert.is(gaps.length > 0, !canPass(entries, { installed, kubernetes, isFit }));
      let current = entries.find(({ version }) => version === installed);
      let at = kubernetes[0] ?? '';
      for (const step of all) {
        if (step.type === 'addon') {
          assert.ok(compareVersions(step.entry.version ?? '', current?.version ?? installed) > 0);
          current = step.entry;
          assert.ok(isFit(current, at));
        } else {
          at = step.version;
          assert.ok(isFit(current, at));
        }
      }
    }),
    cases(500),
  );
});

/** By trying every way. */
function canPass(
  entries: readonly Entry[],
  way: {
    readonly installed: string;
    readonly kubernetes: readonly string[];
    readonly isFit: (entry: Entry | undefined, at: string) => boolean;
  },
): boolean {
  const { installed, kubernetes, isFit } = way;
  const [at, next] = kubernetes;
  if (at === undefined || next === undefined) return true;
  const rest = kubernetes.slice(1);
  const current = entries.find(({ version }) => version === installed);
  const higher = entries.filter(
    (one) => compareVersions(one.version ?? '', installed) > 0 && isFit(one, at) && isFit(one, next),
  );
  const isNext = (version: string): boolean => canPass(entries, { ...way, installed: version, kubernetes: rest });
  return (isFit(current, next) && isNext(installed)) || higher.some(({ version = '' }) => isNext(version));
}

test.run();
