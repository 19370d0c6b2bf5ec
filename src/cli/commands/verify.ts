/** `curlew verify`: proof that packages and bundles are whole and hold nothing but what their tables of contents say. */
import { verify, verifyInstalled, type SignedAs, type Verified } from '../../app/verify.ts';
import { counted } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { isAsInstalled, type VerifiedNode } from '../../runtime/node/verify-placed.ts';
import { command, type OptionSpecs, type OptionValues } from '../command.ts';
import { DOWNGRADE_OPTION, FOLDER_OPTIONS, NETWORK_OPTIONS, SIGNED_OPTIONS } from '../options.ts';
import { columns } from '../render/columns.ts';
import { deltaLines } from '../render/delta.ts';
import { formatBytes } from '../render/units.ts';

const DETAILS = `With --key, the signature is held to what it says: its name (--signed-as), its time, the digest of the whole file, and that no newer version was seen on this node, which its install folder knows.

With --installed, the files of all packages in the install folder are read and compared with what their packages say of them, as that was proved when they were extracted. What differs is printed, a file a line: missing, type, owner, mode, size, digest. The status is 15 when something differs or cannot be judged. What hooks have added beside these files is not looked at; curlew install puts right what differs.`;

const OPTIONS = {
  installed: { type: 'boolean', help: 'what lies in the install folder, in place of files' },
  ...FOLDER_OPTIONS,
  ...SIGNED_OPTIONS,
  ...DOWNGRADE_OPTION,
  config: NETWORK_OPTIONS.config,
} satisfies OptionSpecs;

export const verifyCommand = command({
  name: 'verify',
  operands: '[FILE…]',
  details: DETAILS,
  options: OPTIONS,
  examples: [
    'curlew verify bundle.tar.gz',
    'curlew verify packages/*.tar.gz',
    'curlew verify bundle.tar.gz --key curlew.pub',
    'curlew verify bundle.tar.gz.parts.json',
    'curlew verify --installed',
  ],
  run: async ({ operands: files, options }, context): Promise<readonly Verified[] | VerifiedNode> => {
    checkWords(files, options);
    return options.installed ? verifyInstalled(options, context) : verify({ files, ...options }, context);
  },
  render: (result) => ('packages' in result ? renderNode(result) : renderFiles(result)),
  exitCode: (result) => ('packages' in result && !isAsInstalled(result) ? ERROR_CODES.DIGEST_MISMATCH : 0),
});

function checkWords(files: readonly string[], { installed, ...options }: OptionValues<typeof OPTIONS>): void {
  const bad = (what: string, hint: string): CurlewError => new CurlewError('USAGE', `curlew verify: ${what}`, { hint });
  if (!installed && files.length === 0) {
    throw bad('no file named', 'curlew verify FILE…, or curlew verify --installed');
  }
  if (installed && files.length > 0) {
    throw bad('--installed takes no files', 'verify files and what is installed one after the other');
  }
  const signed = options.key.length > 0 || options.requireSigned || options.signature !== undefined;
  if (installed && signed) {
    throw bad(
      '--installed asks for no signature',
      'curlew install --key asks for it, and puts in place only what it holds for',
    );
  }
  const places = options.root !== undefined || options.installDir !== undefined;
  if (!installed && !signed && places) {
    throw bad('--root and --install-dir go with --installed, or with --key', 'curlew verify --installed');
  }
}

function renderFiles(verified: readonly Verified[]): string {
  return verified
    .map(({ path, size, files, digest, signedBy, signedAs, delta }) =>
      [
        `${path}: ok, ${counted(files, 'file')}, ${formatBytes(size)}`,
        `contents ${digest}`,
        ...(signedBy === undefined ? [] : [`signed with ${signedBy}`]),
        ...(signedAs === undefined ? [] : [asLine(signedAs)]),
        ...(delta === undefined ? [] : deltaLines(delta)),
      ].join('\n'),
    )
    .join('\n');
}

function renderNode({ directory, packages, problems }: VerifiedNode): string {
  const rows = packages.flatMap(({ differences }) =>
    differences.map(({ path, what }) => [what.join(','), visible(path)]),
  );
  const unknown = packages.flatMap((one) =>
    one.problem === undefined ? [] : [`${one.name} ${one.version}: ${visible(one.problem)}`],
  );
  const files = packages.reduce((sum, one) => sum + one.files, 0);
  const bytes = packages.reduce((sum, one) => sum + one.bytes, 0);
  const all = `${counted(packages.length, 'package')}, ${counted(files, 'file')}, ${formatBytes(bytes)}`;
  const end = rows.length === 0 ? '' : `; ${counted(rows.length, 'difference')}`;
  const last = packages.length === 0 ? `Nothing is installed in ${visible(directory)}.` : `${all}${end}`;
  return [...columns(rows), ...unknown, ...problems.map((one) => `Problem: ${visible(one)}`), last].join('\n');
}

function asLine({ role, name, version, signed, expires }: SignedAs): string {
  return `as the ${role} ${name}, version ${version}, at ${signed}${expires === null ? '' : `, until ${expires}`}`;
}
