/** `curlew verify`: verifies packages and bundles against their tables of contents, or installed files. */
import { VERIFY } from '../../requests/archive.ts';
import type { SignedAs, Verified } from '../../app/verify.ts';
import { counted } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, ERROR_CODES, NOTHING_WRITTEN } from '../../core/errors.ts';
import type { VerifiedNode } from '../../runtime/history/verify-placed.ts';
import { commandFor, type Arguments } from '../command.ts';
import { columns } from '../render/columns.ts';
import { deltaLines } from '../render/delta.ts';
import { formatBytes } from '../render/units.ts';

const DETAILS = `With --key, verifies the signature, its name (--signed-as), its expiry and the digest of the whole file, and that this node, according to its install folder, has not seen a newer version.

Of the folder of an unpacked bundle, verifies every file that its table of contents lists, and with --key the signature that is in it (docs/signing.md) or named by --signature.

With --installed, compares the files of all packages in the install folder with the metadata that was verified when they were extracted. Prints each difference on a line: missing, type, owner, mode, size, digest. The exit status is 15 if a file differs or cannot be checked. Ignores files added by hooks; curlew install repairs differences.`;

export const command = commandFor(VERIFY, {
  details: DETAILS,
  examples: [
    'curlew verify bundle.tar.gz',
    'curlew verify packages/*.tar.gz',
    'curlew verify bundle.tar.gz --key curlew.pub',
    'curlew verify bundle.tar.gz.parts.json',
    'curlew verify unpacked --key curlew.pub',
    'curlew verify --installed',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request, options: { installed } }, context): Promise<readonly Verified[] | VerifiedNode> => {
    checkArguments(request, installed);
    const { verify, verifyInstalled } = await import('../../app/verify.ts');
    const { installDir, root } = request;
    return installed ? verifyInstalled({ installDir, root }, context) : verify(request, context);
  },
  render: (result) => ('packages' in result ? renderNode(result) : renderFiles(result)),
  exitCode: (result) => ('packages' in result && !isAsInstalled(result) ? ERROR_CODES.DIGEST_MISMATCH : 0),
});

function checkArguments({ files, ...request }: Arguments<typeof VERIFY>['request'], installed: boolean): void {
  const bad = (what: string, hint: string): CurlewError => new CurlewError('USAGE', `curlew verify: ${what}`, { hint });
  if (!installed && files.length === 0) {
    throw bad('no file given', 'curlew verify FILE…, or curlew verify --installed');
  }
  if (installed && files.length > 0) {
    throw bad('--installed does not accept files', 'verify files and the install folder with separate commands');
  }
  const signed = request.key.length > 0 || request.requireSigned || request.signature !== undefined;
  if (installed && signed) {
    throw bad('--installed does not check signatures', 'use curlew install --key, which installs only signed files');
  }
  const places = request.root !== undefined || request.installDir !== undefined;
  if (!installed && !signed && places) {
    throw bad('--root and --install-dir require --installed or --key', 'curlew verify --installed');
  }
}

/** True if nothing differs and nothing is unknown. */
function isAsInstalled({ packages, problems }: VerifiedNode): boolean {
  return problems.length === 0 && packages.every((one) => one.differences.length === 0 && one.problem === undefined);
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
