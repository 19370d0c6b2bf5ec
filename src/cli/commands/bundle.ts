/** `curlew bundle`: one file with everything that an installer spec names. */
import { resolve } from 'node:path';
import { assembleBundle } from '../../bundle/assemble.ts';
import { openPackages } from '../../bundle/open-packages.ts';
import { planBundle, summarise, type PlanSummary } from '../../bundle/plan.ts';
import { resolvePackages } from '../../bundle/resolve.ts';
import { openExecutable, readRootFiles } from '../../bundle/root-files.ts';
import { INSTALLER_LIMIT } from '../../core/bundle.ts';
import { CurlewError } from '../../core/errors.ts';
import { readLimited } from '../../files/read-limited.ts';
import type { Installer } from '../../installer/installer.ts';
import { parseInstaller } from '../../installer/parse.ts';
import { readCatalogue } from '../../store/catalogue.ts';
import { archOf } from '../arch.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { formatBytes } from '../render/units.ts';
import { noteWarnings } from '../run-source.ts';
import { openStoreFor, STORE_OPTIONS } from '../stores.ts';
import { toolVersion } from '../version.ts';

interface Result extends PlanSummary {
  /** Undefined when only the plan was asked for. */
  readonly file: string | undefined;
  /** Of the table of contents: what a signature covers. */
  readonly tocDigest: string;
}

interface Spec {
  readonly bytes: Uint8Array;
  readonly installer: Installer;
}

async function readSpec(path: string, { cwd, report }: CommandContext): Promise<Spec> {
  const bytes = await readLimited(resolve(cwd, path), INSTALLER_LIMIT);
  const { installer, diagnostics } = parseInstaller(path, bytes.toString('utf8'));
  if (installer === undefined)
    throw new CurlewError('SPEC_INVALID', `${path} is not a valid installer spec`, { diagnostics });
  noteWarnings(report, diagnostics);
  return { bytes, installer };
}

function wordsOf(args: Arguments): { readonly spec: string; readonly from: string } {
  const [spec, ...more] = args.positionals;
  const from = args.text('from');
  if (spec === undefined || more.length > 0) {
    throw new CurlewError('USAGE', 'curlew bundle: name one installer spec', {
      hint: 'curlew bundle installer.yaml …',
    });
  }
  if (from === undefined) throw new CurlewError('USAGE', 'curlew bundle: say with --from where the packages are');
  if (args.text('output') === undefined && !args.flag('plan')) {
    throw new CurlewError('USAGE', 'curlew bundle: say with -o which file to write, or ask for --plan');
  }
  return { spec, from };
}

export const bundle: Command<Result> = {
  name: 'bundle',
  summary: 'Put all packages of an installer spec into one file',
  operands: 'installer.yaml',
  options: {
    from: { type: 'string', value: 'STORE', help: 'folder or s3://bucket/prefix that curlew publish wrote' },
    output: { type: 'string', short: 'o', value: 'FILE', help: 'the bundle to write' },
    release: { type: 'string', value: 'R', help: 'the release to take packages from (default: the current one)' },
    arch: { type: 'string', value: 'ARCH', help: 'amd64 or arm64 (default: amd64)' },
    verify: { type: 'boolean', help: 'prove every byte of the packages again while copying' },
    force: { type: 'boolean', help: 'replace the file if it is there' },
    plan: { type: 'boolean', help: 'say what would be copied from where, and write nothing' },
    ...STORE_OPTIONS,
  },
  details:
    'The bundle is made of byte ranges of the packages as they are: nothing is packed again. It brings its own curlew: ' +
    'on the node, tar and the install.sh in it are enough.',
  examples: [
    'curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz',
    'curlew bundle installer.yaml --from /srv/dist --plan',
  ],
  run: async (args, context) => {
    const { cwd, report, signal } = context;
    const { spec, from } = wordsOf(args);
    const arch = archOf(args);
    const { bytes, installer } = await readSpec(spec, context);
    const store = await openStoreFor(from, args, context, { create: false });
    const catalogue = await readCatalogue(store, { release: args.text('release'), signal });
    await using executable = await openExecutable(arch, { signal });
    const packages = await openPackages(store, resolvePackages(installer, catalogue, arch), { signal });
    const plan = planBundle({
      release: catalogue.release,
      arch,
      installer: bytes,
      rootFiles: await readRootFiles(),
      executable: executable.index,
      packages,
      tool: toolVersion(),
    });
    const output = args.flag('plan') ? undefined : args.text('output');
    const file = output === undefined ? undefined : resolve(cwd, output);
    if (file !== undefined) {
      const options = { force: args.flag('force'), verify: args.flag('verify'), report, signal };
      await assembleBundle(plan, [...packages.map(({ source }) => source), executable.source], file, options);
    }
    return { file, tocDigest: plan.splice.index.tocDigest, ...summarise(plan) };
  },
  render: ({ file, release, packages, size, fresh, linked, ranges }) => {
    const lines = packages.map(({ name, version, requested, because, size: bytes }) => {
      const why = because === 'exact' ? '' : `, ${because === requested ? because : `${requested}: ${because}`}`;
      return `${name} ${version} (${formatBytes(bytes)}${why})`;
    });
    if (file === undefined) {
      lines.push(...ranges.map(({ key, offset, length }) => `copy ${length} bytes of ${key} from ${offset}`));
    }
    const saved = linked === 0 ? '' : `, ${formatBytes(linked)} there once instead of twice`;
    const made = `${formatBytes(size)} from release ${release}, ${formatBytes(fresh)} of it new${saved}`;
    lines.push(file === undefined ? `would be ${made}` : `${file}: ${made}`);
    return lines.join('\n');
  },
};
