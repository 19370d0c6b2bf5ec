import { createPrivateKey } from 'node:crypto';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import { componentsOf } from '../../../src/build/sbom/components.ts';
import type { Described } from '../../../src/build/sbom/described.ts';
import { provenanceOf, type Builder } from '../../../src/build/sbom/provenance.ts';
import { makeKeyPair, readPublicKey } from '../../../src/formats/signing/keys.ts';
import { formatStatement, signStatement, verifyStatement } from '../../../src/formats/signing/statement.ts';
import * as assert from '../../support/assert.ts';
import { describedPackage, LOCK } from '../../support/described.ts';
import { suite } from '../../support/suite.ts';

const test = suite('sbom/provenance');

const FILE = { name: 'web-1.0.0.tar.gz', sha256: digestOf('file') };
const NOBODY: Builder = { id: 'urn:x', invocation: undefined, repository: undefined, commit: undefined };
const PACKAGE: Described = { contents: digestOf('toc'), packages: [describedPackage()], bundle: undefined };

test('the statement is about the file, its contents and its identity, and names every input with its digest', () => {
  const builder = {
    id: 'https://ci.example/builder',
    invocation: 'https://ci.example/runs/7',
    repository: 'git+https://git.example/repo@refs/heads/main',
    commit: 'abcdef1',
  };
  const [described] = PACKAGE.packages;
  if (described === undefined) throw new Error('none');
  assert.equal(provenanceOf(FILE, PACKAGE, builder), {
    subjects: [
      { name: 'web-1.0.0.tar.gz', digest: digestOf('file') },
      { name: 'stargz.index.json', digest: digestOf('toc') },
      { name: 'addons/web/1.0.0/', digest: described.addon.digest },
    ],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:curlew:build:v1',
        externalParameters: { addon: 'addons/web/1.0.0', arch: 'amd64', imageFormat: 'oci' },
        resolvedDependencies: [
          { uri: 'git+https://git.example/repo@refs/heads/main', digest: { gitCommit: 'abcdef1' } },
          ...componentsOf(described)
            .filter(({ kind }) => kind !== 'built file')
            .map(({ name, purl, digest, url }) => ({
              name,
              uri: purl,
              digest: { sha256: hexOf(digest) },
              ...(url === undefined ? {} : { downloadLocation: url }),
            })),
          {
            name: 'Dockerfile',
            digest: { curlewInputs: hexOf(digestOf('inputs')) },
            annotations: { folder: 'rhel-8', version: '1.0' },
          },
        ],
      },
      runDetails: {
        builder: { id: 'https://ci.example/builder', version: { curlew: '0.0.0' } },
        metadata: { invocationId: 'https://ci.example/runs/7' },
      },
    },
  });
});

test('of a bundle the inputs are its packages, the installer spec and the tool', () => {
  const { name, version, tree, arch, digest } = describedPackage().addon;
  const listed = { name, version, tree, arch, requested: 'latest', digest, sha256: digestOf('package'), size: 1 };
  const json = {
    format: 1,
    release: 'r1',
    arch,
    installer: digestOf('spec'),
    packages: [listed],
    os: { kept: ['rhel-9', 'ubuntu-22.04'], omitted: 3 },
    tool: '1.2.3',
  } as const;
  const statement = provenanceOf(FILE, { ...PACKAGE, bundle: { json, tool: digestOf('tool') } }, NOBODY);
  assert.equal(statement.predicate['buildDefinition'], {
    buildType: 'urn:curlew:bundle:v1',
    externalParameters: { release: 'r1', arch: 'amd64', installer: digestOf('spec'), os: 'rhel-9,ubuntu-22.04' },
    resolvedDependencies: [
      {
        name: 'addons/web/1.0.0',
        uri: 'pkg:generic/web@1.0.0?arch=amd64',
        digest: { sha256: hexOf(digestOf('package')) },
      },
      { name: 'bin/curlew', digest: { sha256: hexOf(digestOf('tool')) } },
    ],
  });
});

test('it is signed and verified as any statement, and hostile names are carried as they are', () => {
  const { privateKey, publicKey } = makeKeyPair(undefined);
  const statement = provenanceOf(FILE, PACKAGE, NOBODY);
  const signed = { text: signStatement(statement, createPrivateKey(privateKey)), from: 'p', about: 'web' };
  const { statement: read } = verifyStatement(signed, [readPublicKey(publicKey, 'our')], (found) => found, '');
  assert.equal(read, JSON.parse(JSON.stringify(read)));
  assert.is(formatStatement(read), formatStatement(JSON.parse(JSON.stringify(statement)) as typeof statement));
  assert.match(formatStatement(read), LOCK.assets[0]?.digest.slice(7) ?? 'none');
});

test.run();
