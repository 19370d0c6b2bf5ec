/** `curlew sbom`: what a package or a bundle is made of, for those who look for what is vulnerable. */
import { ANYWHERE_OPTIONS, FOLDER_OPTIONS } from '../options.ts';
import { resolve } from 'node:path';
import { readIndex } from '../../formats/archive/read.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { printableJson } from '../../core/json.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { writeText } from '../../platform/files/write-whole.ts';
import { formatSbom, type Sbom } from '../../build/sbom/cyclonedx.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { folderOf } from '../../app/install-folder.ts';
import { besideOf, openAnywhere, requireOther } from '../../app/archives/open-anywhere.ts';
import { describeArchive } from '../../app/archives/describe-archive.ts';
import { outputOf } from '../output.ts';
import { toolVersion } from '../../app/version.ts';

interface Written {
  readonly file: string;
  readonly serialNumber: string;
  readonly components: number;
}

/** Where they were written to, or the document itself. */
type Result = readonly Written[] | Written | Readonly<Record<string, unknown>>;

export const sbomCommand: Command<Result> = {
  name: 'sbom',
  summary: 'List what a package or bundle is made of, as CycloneDX',
  operands: 'PACKAGE | BUNDLE | ADDRESS…',
  options: {
    output: { type: 'string', short: 'o', value: 'FILE', help: 'the SBOM to write (default: standard output)' },
    beside: { type: 'boolean', help: 'write FILE.cdx.json beside each file (of an address into the current folder)' },
    force: { type: 'boolean', help: 'with --output: replace the file if it is there' },
    'install-dir': { ...FOLDER_OPTIONS['install-dir'], help: 'of a delta: the folder that has the rest' },
    ...ANYWHERE_OPTIONS,
  },
  details: `CycloneDX 1.6 in JSON: images, host packages of every operating system and assets with their digests and package URLs, as the locks of the packages have them. Of a bundle also its packages, and the curlew inside.

Only the table of contents and small files are read, also through a URL or s3://bucket/key. The same file gives the same SBOM.`,
  examples: [
    'curlew sbom web-1.0.0.tar.gz -o web-1.0.0.cdx.json',
    'curlew sbom bundle.tar.gz | grype',
    'curlew sbom packages/*.tar.gz --beside',
    'curlew sbom https://packages.example/dist/web-1.0.0.tar.gz',
  ],
  run: async (args, context) => {
    const { cwd, signal } = context;
    const [word, ...more] = args.positionals;
    const [output, isBeside] = [outputOf(args), args.flag('beside')];
    if (word === undefined || (more.length > 0 && !isBeside)) {
      throw new CurlewError('USAGE', 'curlew sbom: name one file, or files with --beside', {
        hint: 'curlew sbom FILE, or curlew sbom FILE… --beside',
      });
    }
    if (isBeside) {
      if (args.text('output') === undefined) return writeBeside(args, context);
      throw new CurlewError('USAGE', 'curlew sbom: --output and --beside do not go together');
    }
    const { text, serialNumber, components } = await makeSbom(word, args, context);
    if (output === undefined) return JSON.parse(text) as Result;
    const file = resolve(cwd, output);
    signal.throwIfAborted();
    await writeText(file, text, { force: args.flag('force') });
    return { file, serialNumber, components };
  },
  render: (result) => {
    if (isMany(result)) return result.map((one) => writtenLine(one)).join('\n');
    return isWritten(result) ? `${writtenLine(result)}\n${result.serialNumber}` : printableJson(result, 2);
  },
};

function isMany(result: Result): result is readonly Written[] {
  return Array.isArray(result);
}

function isWritten(result: Exclude<Result, readonly Written[]>): result is Written {
  return 'file' in result;
}

function writtenLine({ file, components }: Written): string {
  return `${file}: ${counted(components, 'component')}`;
}

/** One after the other: an SBOM of a large bundle takes memory. */
async function writeBeside(args: Arguments, context: CommandContext): Promise<readonly Written[]> {
  const { cwd, signal } = context;
  const written: Written[] = [];
  for (const word of args.positionals) {
    const { text, serialNumber, components, whole } = await makeSbom(word, args, context);
    const file = `${besideOf(word, whole)}.cdx.json`;
    requireOther(
      file,
      written.map((one) => one.file),
    );
    signal.throwIfAborted();
    await writeStateFile(resolve(cwd, file), text, 0o644);
    written.push({ file, serialNumber, components });
  }
  return written;
}

async function makeSbom(
  word: string,
  args: Arguments,
  context: CommandContext,
): Promise<Sbom & { readonly whole: string }> {
  const { signal } = context;
  await using source = await openAnywhere(word, args.options, context);
  const index = await readIndex(source, { signal });
  const described = await describeArchive(source, { index, directory: folderOf(args.options, context), signal });
  return { ...formatSbom(described, toolVersion()), whole: source.whole };
}
