/**
 * Signs a release of curlew itself, in the folder of scripts/ci/release-pack: SHA256SUMS.sig, which openssl verifies, and
 * curlew-VERSION.provenance.sigstore.json, SLSA provenance about each file, which cosign verifies. Takes the private key
 * from standard input, and CURLEW_KEY_PASSPHRASE. Only whoever has the key of `release.pub` can sign.
 * usage: tsx scripts/release-provenance.ts FOLDER SUBJECTS VERSION   (SUBJECTS: a file with lines of sha256sum)
 */
import { createPublicKey, sign } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { serviceBuilder } from '../src/app/provenance.ts';
import { parseDigest } from '../src/core/digest.ts';
import { CurlewError } from '../src/core/errors.ts';
import { provenanceSource, type SourceResource, SLSA_PROVENANCE } from '../src/build/sbom/provenance.ts';
import { readPrivateKey, readPublicKey } from '../src/formats/signing/keys.ts';
import { signStatement, type Statement, type Subject } from '../src/formats/signing/statement.ts';
import PINS from './node-tool/node.json' with { type: 'json' };

const KEY = 'CURLEW_RELEASE_KEY';

function subjectsOf(list: string, from: string): readonly Subject[] {
  return list
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [, hex = '', name = ''] = /^(\S+) [ *](.+)$/.exec(line) ?? [];
      return { name, digest: parseDigest(`sha256:${hex}`, `${from}: ${name}`) };
    });
}

/** The Nodes that the executables are made of, as nodejs.org has them. */
function nodes(): readonly SourceResource[] {
  return Object.values(PINS.arches).map(({ archive, archiveDigest }) => ({
    name: archive,
    uri: `https://nodejs.org/dist/v${PINS.version}/${archive}`,
    digest: { sha256: archiveDigest },
  }));
}

function statementOf(subjects: readonly Subject[], version: string): Statement {
  const builder = serviceBuilder(process.env);
  const { id, invocation } = builder;
  return {
    subjects,
    predicateType: SLSA_PROVENANCE,
    predicate: {
      buildDefinition: {
        buildType: 'urn:curlew:own-release:v1',
        externalParameters: { version },
        resolvedDependencies: [...provenanceSource(builder), ...nodes()],
      },
      runDetails: {
        builder: { id },
        ...(invocation === undefined ? {} : { metadata: { invocationId: invocation } }),
      },
    },
  };
}

async function main(): Promise<void> {
  const [folder, list, version] = process.argv.slice(2);
  if (folder === undefined || list === undefined || version === undefined) {
    throw new CurlewError('USAGE', 'release-provenance.ts FOLDER SUBJECTS VERSION');
  }
  const key = readPrivateKey(await text(process.stdin), KEY, process.env['CURLEW_KEY_PASSPHRASE'] || undefined);
  const trusted = readPublicKey(await readFile('docs/release.pub', 'utf8'), 'docs/release.pub');
  if (!createPublicKey(key).equals(trusted.key)) {
    throw new CurlewError('SIGNATURE_INVALID', `${KEY} is not the private key of docs/release.pub`, {
      hint: 'users hold releases against that file: commit the public key first, and tag a commit that has it',
    });
  }
  const statement = statementOf(subjectsOf(await readFile(list, 'utf8'), list), version);
  await writeFile(join(folder, `curlew-${version}.provenance.sigstore.json`), signStatement(statement, key));
  await writeFile(join(folder, 'SHA256SUMS.sig'), sign('sha256', await readFile(join(folder, 'SHA256SUMS')), key));
}

await main().catch((error: unknown) => {
  const hint = error instanceof CurlewError && error.hint !== undefined ? `\n${error.hint}` : '';
  console.error(`error: ${error instanceof Error ? error.message : String(error)}${hint}`);
  process.exitCode = 1;
});
