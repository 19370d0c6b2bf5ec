/** `curlew publish`: builds what has changed and publishes a release. */
import { PUBLISH } from '../../requests/build.ts';
import type { PublishPlan } from '../../app/publish.ts';
import type { PublishResult } from '../../ship/release/publish.ts';
import { counted } from '../../core/counted.ts';
import { commandFor } from '../command.ts';
import type { Paint } from '../render/paint.ts';
import { formatBytes } from '../render/units.ts';

const OUTCOMES = {
  uploaded: 'uploaded',
  copied: 'unchanged, copied within the store',
  present: 'already present',
} as const;

export const command = commandFor(PUBLISH, {
  details:
    'Without names, the release contains exactly the add-ons in ./addons and ./packages. With names, it contains these, and\n' +
    'all other add-ons of the previous release. Packages of these versions for another architecture stay: for both, publish\n' +
    'once for each --arch.\n\n' +
    'Packages that have not changed since the previous release are not built or uploaded, but copied within the store: curlew\n' +
    'compares their files, what their tags and addresses currently resolve to, and the inputs of container builds with the\n' +
    'records of that release. After an interruption, run the same command again to resume.',
  examples: [
    'curlew publish --to /srv/dist',
    'curlew publish --to /srv/dist --release v1.4.0 --dry-run',
    'curlew publish --to /srv/dist --sign release.key',
    'curlew publish --to /srv/dist --channel stable',
  ],
  run: async ({ request, options: { dryRun } }, context): Promise<PublishResult | PublishPlan> => {
    const { planPublish, publish } = await import('../../app/publish.ts');
    return dryRun ? planPublish(request, context) : publish(request, context);
  },
  listsSteps: true,
  render: (result, _, paint) => ('plan' in result ? planText(result) : resultText(result, paint)),
});

function channelText(channels: readonly string[]): string {
  return channels.length === 0 ? '' : `, with the channels ${channels.join(', ')}`;
}

function planText({ store, release, plan, channels, bytesUp, bytesCopied }: PublishPlan): string {
  const lines = plan.map(({ name, version, change, because, since, size }) => {
    const reason = change === 'unchanged' ? `unchanged since ${since}` : `${change}: ${because}`;
    return `${name} ${version}: ${reason}, ${size === undefined ? 'size not known yet' : formatBytes(size)}`;
  });
  const up = `${uploadText(plan, bytesUp)} to be uploaded`;
  return [
    ...lines,
    `${store}: ${release} would be created${channelText(channels)}; ${up}, ${formatBytes(bytesCopied)} copied`,
  ].join('\n');
}

/** Sizes of earlier packages are estimates of those to be built. */
function uploadText(plan: PublishPlan['plan'], bytesUp: number): string {
  const built = plan.filter(({ change }) => change !== 'unchanged');
  const unknown = built.filter(({ size }) => size === undefined).length;
  const known = built.length > unknown ? [`about ${formatBytes(bytesUp)}`] : [];
  const rest = unknown === 0 ? [] : [`${counted(unknown, 'package')} of a size not known yet`];
  return [...known, ...rest].join(' and ') || formatBytes(0);
}

function resultText(
  { store, release, previous, packages, channels, signed, bytesUp, bytesCopied, bytesPresent }: PublishResult,
  paint: Paint,
): string {
  const mixed = new Set(packages.map(({ arch }) => arch)).size > 1;
  const lines = packages.map(({ name, version, arch, size, outcome, sent }) => {
    const rest = outcome === 'uploaded' && sent < size ? `${formatBytes(sent)} of ` : '';
    const why = rest === '' ? '' : ' (the rest was uploaded by an interrupted run)';
    const mark = paint.mark(outcome === 'uploaded' ? 'done' : 'same');
    return `${mark}${name} ${version}${mixed ? ` (${arch})` : ''}: ${OUTCOMES[outcome]}, ${rest}${formatBytes(size)}${why}`;
  });
  const before = previous === undefined || previous === release ? '' : ` (before: ${previous})`;
  const present = bytesPresent === 0 ? '' : `, ${formatBytes(bytesPresent)} already present`;
  const moved = `${formatBytes(bytesUp)} uploaded, ${formatBytes(bytesCopied)} copied${present}`;
  const signature = signed === undefined ? '' : `, signed with ${signed.by} until ${signed.until}`;
  const current = `${release} is the current release${before}${channelText(channels)}${signature}`;
  return [...lines, `${store}: ${current}; ${moved}`].join('\n');
}
