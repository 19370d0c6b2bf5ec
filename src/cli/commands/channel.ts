/** `curlew channel …`: which versions of add-ons fit which Kubernetes. */
import { CHANNEL_PLAN } from '../../requests/channel.ts';
import { CHANNEL_CHECK } from '../../requests/channel.ts';
import { CHANNEL_EXPLAIN } from '../../requests/channel.ts';
import type { ExplainedAddon, ExplainedChannel, ExplainedEntry } from '../../app/channel-explain.ts';
import type { ChannelPlan, PlannedGap, PlannedStep } from '../../app/channel-plan.ts';
import { entryTitle } from '../../cluster/channel/channel.ts';
import { counted } from '../../core/counted.ts';
import { renderDiagnostic } from '../../core/diagnostic.ts';
import { ERROR_CODES, NOTHING_WRITTEN } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { screen, wrap, wrapped } from '../render/columns.ts';
import { condense } from '../render/findings.ts';
import { paintDiagnostic } from '../render/paint.ts';

export const LOCATIONS =
  'A LOCATION is a path, a file: or https: URL, or s3://bucket/key, of a Channel, of an index of kops (kind: Addons), or of a manifest.';

function entryRow(entry: ExplainedEntry, { addon, kubernetes }: ExplainedAddon): readonly string[] {
  const { version = '-', id, kubernetesVersion, outcome, because } = entry;
  // The range is in the row.
  const why = outcome === 'other-kubernetes' ? `not for ${kubernetes}` : because.replace(`${addon} `, '');
  const isChosen = outcome === 'chosen';
  return [isChosen ? '*' : '', version, id || '-', kubernetesVersion || 'every', isChosen ? 'chosen' : why];
}

const ENTRY_HEAD = ['', 'VERSION', 'ID', 'KUBERNETES', 'WHY'];

function explainedLines(channel: ExplainedChannel, result: ExplainedAddon): readonly string[] {
  const { addon, kubernetes } = result;
  const { location, chosen, entries, near, error } = channel;
  if (error !== undefined) return [`${location}: ${error.message}`];
  if (entries.length === 0) return [`${location}: does not have ${addon}`];
  const table = wrapped([ENTRY_HEAD, ...entries.map((entry) => entryRow(entry, result))]);
  if (chosen === undefined) {
    const titles = near.map((entry) => `${entryTitle({ name: addon, ...entry })} (line ${entry.line})`);
    const next = titles.length === 0 ? '' : `; nearest: ${titles.join(', ')}`;
    return [`${location}: no entry of ${addon} is for Kubernetes ${kubernetes}${next}`, ...table];
  }
  const { source, requires, line } = chosen;
  const wanted = requires.map(({ name, version }) => `${name} ${version}`.trim());
  return [
    `${location}:${line}: ${entryTitle({ name: addon, ...chosen })}`,
    ...(source === undefined ? [] : [`  applies ${source}`]),
    ...(wanted.length === 0 ? [] : [`  requires ${wanted.join(', ')}`]),
    ...table,
  ];
}

export const explain = commandFor(CHANNEL_EXPLAIN, {
  details: `Shows which entry of an add-on a cluster gets, and why not each other one. Exits with status 14 if no entry is for this version of Kubernetes.\n\n${LOCATIONS}`,
  examples: [
    'curlew channel explain weave channel.yaml --kubernetes v1.31.2',
    'curlew channel explain weave s3://b/addon.yaml --compat kops --kubernetes 1.32',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/channel-explain.ts')).explainChannels(request, context),
  render: (result) => {
    const { addon, kubernetes, channels } = result;
    const having = channels.filter(({ entries }) => entries.length > 0).map(({ location }) => location);
    const shared = `${addon} is in ${having.length} of these channels, which are separate: leave it to one of them`;
    return [
      `${addon} for Kubernetes ${kubernetes}`,
      ...(having.length > 1 ? [shared] : []),
      ...channels.flatMap((channel) => ['', ...explainedLines(channel, result)]),
    ];
  },
  exitCode: ({ channels }) => {
    const failed = channels.find(({ error }) => error !== undefined)?.error;
    if (failed !== undefined) return ERROR_CODES[failed.code];
    return channels.some(({ chosen }) => chosen !== undefined) ? 0 : ERROR_CODES.NOT_FOUND;
  },
});

export const check = commandFor(CHANNEL_CHECK, {
  details: `Checks channels and the manifests that they name. Exits with status 10 if there is an error; warnings do not count.\n\n${LOCATIONS}`,
  examples: ['curlew channel check channel.yaml', 'curlew channel check s3://releases/addons/index.yaml --compat kops'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/channel-check.ts')).checkChannels(request, context),
  render: ({ channels, diagnostics, errors, warnings }, { options }, paint) => {
    const count = (of: 'addons' | 'entries'): number => channels.reduce((sum, channel) => sum + channel[of], 0);
    const sums = [
      counted(channels.length, 'channel'),
      counted(count('addons'), 'add-on'),
      counted(count('entries'), 'alternative'),
      counted(errors, 'error'),
      counted(warnings, 'warning'),
    ];
    const everything = { shown: diagnostics.map((first) => ({ first, count: 1 })), counted: [] };
    const { shown, counted: many } = options.all ? everything : condense(diagnostics);
    return [
      ...shown.flatMap(({ first, count: alike }) => [
        paintDiagnostic(renderDiagnostic(first, first.source), first.severity, paint),
        ...(alike > 1 ? [`  and in ${counted(alike - 1, 'more place')} (--all shows them)`] : []),
      ]),
      ...many,
      sums.join(', '),
    ].join('\n');
  },
  exitCode: ({ channels, errors }) => {
    const failed = channels.find(({ error }) => error !== undefined)?.error;
    return failed !== undefined ? ERROR_CODES[failed] : errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0;
  },
});

function gapLines({ message, from, at, near, hint }: PlannedGap): readonly string[] {
  const rows = near.map(({ addon, kubernetesVersion, fits, because, ...entry }) => [
    `  ${entryTitle({ name: addon, ...entry })}`,
    kubernetesVersion || 'every',
    // The range is in the row.
    { old: `not for ${at}`, new: `not for ${from}`, both: because }[fits],
  ]);
  const table = rows.length === 0 ? [] : wrapped([['  NEAR', 'KUBERNETES', 'WHY NOT'], ...rows]);
  return [
    ...wrap(message, screen.columns),
    ...table,
    ...(hint === undefined ? [] : wrap(`hint: ${hint}`, screen.columns)),
  ];
}

function stepRow(step: PlannedStep, late: readonly string[]): readonly string[] {
  if (step.type === 'addon') return [entryTitle({ name: step.addon, ...step }), step.because];
  const why = late.length === 0 ? 'all add-ons fit it' : `GAP: it is not for ${late.join(', ')} until the next step`;
  return [`Kubernetes ${step.version}`, why];
}

/** Add-ons that move right after the step at this index, because what is installed does not fit it. */
function lateAfter(steps: readonly PlannedStep[], at: number): readonly string[] {
  const next = steps.findIndex(({ type }, index) => index > at && type === 'kubernetes');
  const moving = steps.slice(at + 1, next < 0 ? undefined : next);
  return moving.flatMap((step) => (step.type === 'addon' && step.afterGap === true ? [step.addon] : []));
}

function planLines({ kubernetes, steps, gaps, notes }: ChannelPlan): readonly string[] {
  if (gaps.length > 0) return gaps.flatMap(gapLines);
  const rows = steps.map((step, at) => [String(at + 1), ...stepRow(step, lateAfter(steps, at))]);
  const table = rows.length === 0 ? ['nothing to do'] : wrapped([['STEP', 'TO', 'WHY'], ...rows]);
  return [
    ...wrap(`Kubernetes ${kubernetes.join(' -> ')}`, screen.columns),
    '',
    ...table,
    ...notes.map((note) => `note: ${note}`),
  ];
}

export const plan = commandFor(CHANNEL_PLAN, {
  details: `Shows the steps of an upgrade of Kubernetes: minor by minor, and which add-on moves before which step. Versions of Kubernetes are the channel's entries of the add-on kubernetes, and those of --available. If an add-on cannot pass a step, there is no plan: the gap is shown with the entries that nearly fit, and the exit status is 14.\n\n${LOCATIONS}`,
  examples: [
    'curlew channel plan c.yaml --from v1.32.4 --to v1.35.x --installed web=2.8.1',
    'curlew channel plan addon.yaml --from v1.30.2 --to v1.31.4 --compat kops',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/channel-plan.ts')).planChannels(request, context),
  render: (plan) => planLines(plan),
  exitCode: ({ gaps }) => (gaps.length > 0 ? ERROR_CODES.NOT_FOUND : 0),
});
