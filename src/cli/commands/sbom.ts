/** `curlew sbom`: what a package or a bundle is made of, for those who look for what is vulnerable. */
import { resolve } from 'node:path';
import { readIndex } from '../../archive/read.ts';
import { CurlewError } from '../../core/errors.ts';
import { writeText } from '../../files/write-whole.ts';
import { formatSbom } from '../../sbom/cyclonedx.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { FOLDER_OPTIONS, folderOf } from '../node-folder.ts';
import { ANYWHERE_OPTIONS, openAnywhere } from '../open-anywhere.ts';
import { describeArchive } from '../open-described.ts';
import { toolVersion } from '../version.ts';

interface Written {
  readonly file: string;
  readonly serialNumber: string;
  readonly components: number;
}

/** Where it was written to, or the document itself. */
type Result = Written | Readonly<Record<string, unknown>>;

export const sbomCommand: Command<Result> = {
  name: 'sbom',
  summary: 'List what a package or bundle is made of, as CycloneDX',
  operands: 'PACKAGE | BUNDLE | ADDRESS',
  options: {
    output: { type: 'string', short: 'o', value: 'FILE', help: 'the SBOM to write (default: standard output)' },
    force: { type: 'boolean', help: 'replace the file if it is there' },
    'install-dir': { ...FOLDER_OPTIONS['install-dir'], help: 'of a delta: the folder that has the rest' },
    ...ANYWHERE_OPTIONS,
  },
  details: `CycloneDX 1.6 in JSON: images, host packages of every operating system and assets with their digests and package URLs, as the locks of the packages have them. Of a bundle also its packages, and the curlew inside.

Only the table of contents and small files are read, also through a URL or s3://bucket/key. The same file gives the same SBOM.`,
  examples: [
    'curlew sbom web-1.0.0.tar.gz -o web-1.0.0.cdx.json',
    'curlew sbom bundle.tar.gz | grype',
    'curlew sbom https://packages.example/dist/web-1.0.0.tar.gz',
  ],
  run: async (args, context) => {
    const { cwd, signal } = context;
    const [word, ...more] = args.positionals;
    if (word === undefined || more.length > 0) {
      throw new CurlewError('USAGE', 'curlew sbom: name one file', { hint: 'curlew sbom FILE' });
    }
    const { text, serialNumber, components } = await makeSbom(word, args, context);
    const output = args.text('output');
    if (output === undefined) return JSON.parse(text) as Result;
    const file = resolve(cwd, output);
    signal.throwIfAborted();
    await writeText(file, text, { force: args.flag('force') });
    return { file, serialNumber, components };
  },
  render: (result) =>
    'file' in result
      ? `${String(result['file'])}: ${String(result['components'])} components\n${String(result['serialNumber'])}`
      : JSON.stringify(result, undefined, 2),
};

async function makeSbom(
  word: string,
  args: Arguments,
  context: CommandContext,
): Promise<ReturnType<typeof formatSbom>> {
  const { signal } = context;
  await using source = await openAnywhere(word, args, context);
  const index = await readIndex(source, { signal });
  return formatSbom(
    await describeArchive(source, { index, directory: folderOf(args, context), signal }),
    toolVersion(),
  );
}
