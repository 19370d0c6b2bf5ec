/** `curlew bundle`: writes all packages of an installer spec to one file. */
import { CurlewError } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import {
  DOWNGRADE_OPTION,
  KEY_OPTIONS,
  NETWORK_OPTIONS,
  PARTS_OPTIONS,
  SETTINGS_OPTION,
  STORE_OPTIONS,
} from '../options.ts';
import { outputOf, STANDARD_OUTPUT } from '../output.ts';
import { renderBundle } from '../render/bundle.ts';
import { openStandardOutput } from '../standard-output.ts';
import { arch, size } from '../values.ts';

const bundle = useCase(async () => (await import('../../app/bundle.ts')).bundle);

export const bundleCommand = command({
  name: 'bundle',
  operands: '[installer.yaml]',
  options: {
    output: {
      type: 'string',
      short: 'o',
      value: 'FILE',
      help: 'the bundle to write: a file, s3://bucket/prefix/name.tar.gz, or - for standard output',
    },
    verify: { type: 'boolean', help: 'check images, and verify every byte of the packages while copying' },
    split: {
      type: 'string',
      read: size,
      value: 'SIZE',
      help: 'write parts of at most this size, such as 4480M or 1.5G',
    },
    ...PARTS_OPTIONS,
    force: { type: 'boolean', help: 'replace an existing file' },
    plan: { type: 'boolean', help: 'show what would be copied from where, and write no bundle' },
    out: { type: 'string', value: 'FILE', help: 'with --plan: save the plan, for --from-plan' },
    against: { type: 'string', value: 'FILE', help: 'with --plan: show what differs from this saved plan' },
    from: { type: 'string', value: 'STORE', help: 'store with the packages: a folder or s3://bucket/prefix' },
    release: { type: 'string', value: 'R', help: 'release with the packages (default: the current one)' },
    arch: { type: 'string', read: arch, value: 'ARCH', help: 'amd64 or arm64 (default: amd64)' },
    with: {
      type: 'string',
      multiple: true,
      value: 'NAME[@VERSION]',
      help: "an additional package, which a site's own spec can use",
    },
    without: { type: 'string', multiple: true, value: 'NAME', help: 'omit an add-on of the spec' },
    os: {
      type: 'string',
      multiple: true,
      read: (text: string) => text.split(','),
      value: 'OS[,OS]',
      help: 'keep host packages of these systems only, such as ubuntu-22.04,rhel-9 (default: all)',
    },
    'upgrade-from': {
      type: 'string',
      multiple: true,
      value: '[NAME@]VERSION',
      help: 'add packages for upgrades from this version of kubernetes (or rook@, containerd@) or later',
    },
    layout: {
      type: 'string',
      read: layout,
      value: 'kurl',
      help: "for kURL's own scripts in --kurl-scripts instead of curlew",
    },
    'kurl-scripts': {
      type: 'string',
      value: 'DIR',
      help: "kURL's install.sh, join.sh, upgrade.sh, tasks.sh, and kurl/",
    },
    'from-plan': {
      type: 'string',
      value: 'FILE',
      help: 'execute the plan from --plan --out instead of a spec',
    },
    ...SETTINGS_OPTION,
    image: {
      type: 'string',
      multiple: true,
      value: 'REF',
      help: 'an additional image, which nodes load with the others',
    },
    ...NETWORK_OPTIONS,
    ...KEY_OPTIONS,
    ...DOWNGRADE_OPTION,
    ...STORE_OPTIONS,
    since: {
      type: 'string',
      value: 'INVENTORY',
      help: 'write a delta without the files in an inventory (see curlew inventory)',
    },
  },
  details:
    'The bundle consists of byte ranges of the packages: nothing is packed again. It includes its own curlew, so a node ' +
    'needs only tar and the install.sh in the bundle.\n\n' +
    'A saved plan can be inspected, compared with another one, and executed later or on another machine with the same result. ' +
    'If a package has changed since then, nothing is written.',
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
  run: async ({ operands: [spec], options: { output, os, to, json, ...options } }, context) => {
    const request = { spec, output: outputOf(output), os: os.flat(), to: to.flat(), ...options };
    if (output !== STANDARD_OUTPUT || options.plan) return bundle(request, context);
    if (json) {
      throw new CurlewError('USAGE', 'curlew bundle: with -o -, standard output contains the bundle itself', {
        hint: 'omit --json, or run --plan --json first',
      });
    }
    return bundle(request, context, { name: 'standard output', write: openStandardOutput(context) });
  },
  carriesBytes: ({ options }) => options.output === STANDARD_OUTPUT && !options.plan,
  render: (result) => renderBundle(result, result),
});

function layout(text: string, option: string): 'kurl' {
  if (text === 'kurl') return text;
  throw new CurlewError('USAGE', `${option} ${text.slice(0, 40)}: the only valid layout is kurl`);
}
