/** `curlew sbom`: writes the components of a package or bundle, for vulnerability scanners. */
import { SBOM } from '../../requests/archive.ts';
import type { WrittenSbom } from '../../app/sbom.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { printableJson } from '../../core/json.ts';
import { commandFor, FILES_STAY } from '../command.ts';
import { commandOutput } from '../output.ts';

/** The written files, or the document itself. */
type Result = readonly WrittenSbom[] | WrittenSbom | Readonly<Record<string, unknown>>;

export const command = commandFor(SBOM, {
  details: `Writes CycloneDX 1.6 in JSON: images, host packages of every operating system and assets with their digests and package URLs, from the locks of the packages. For a bundle, also its packages and its curlew.

  Reads only the table of contents and small files, also from a URL or s3://bucket/key. The same file always gives the same SBOM.`,
  examples: [
    'curlew sbom web-1.0.0.tar.gz -o web-1.0.0.cdx.json',
    'curlew sbom bundle.tar.gz | grype',
    'curlew sbom packages/*.tar.gz --beside',
    'curlew sbom https://packages.example/dist/web-1.0.0.tar.gz',
  ],
  left: FILES_STAY,
  run: async ({ request: { files, output, force, ...request }, options: { beside } }, context): Promise<Result> => {
    const [file = '', ...more] = files;
    if (more.length > 0 && !beside) {
      throw new CurlewError('USAGE', 'curlew sbom: specify one file, or several with --beside', {
        hint: 'curlew sbom FILE, or curlew sbom FILE… --beside',
      });
    }
    if (beside && output !== undefined) {
      throw new CurlewError('USAGE', 'curlew sbom: --output and --beside cannot be used together');
    }
    const { sbom, writeSbom, writeSbomsBeside } = await import('../../app/sbom.ts');
    if (beside) return writeSbomsBeside({ files, ...request }, context);
    const to = commandOutput(output);
    return to === undefined
      ? sbom({ file, ...request }, context)
      : writeSbom({ file, output: to, force, ...request }, context);
  },
  render: (result) => {
    if (isMany(result)) return result.map((one) => writtenLine(one)).join('\n');
    return isWritten(result) ? `${writtenLine(result)}\n${result.serialNumber}` : printableJson(result, 2);
  },
});

function isMany(result: Result): result is readonly WrittenSbom[] {
  return Array.isArray(result);
}

function isWritten(result: Exclude<Result, readonly WrittenSbom[]>): result is WrittenSbom {
  return 'file' in result;
}

function writtenLine({ file, components }: WrittenSbom): string {
  return `${file}: ${counted(components, 'component')}`;
}
