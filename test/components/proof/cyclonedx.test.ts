/** The strict schema of CycloneDX, as its Python library has it, reads what `curlew sbom` writes. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatLock } from '../../../src/manifest/lock.ts';
import * as assert from '../../support/assert.ts';
import { curlewOk } from '../../support/curlew.ts';
import { bundleOfPackages } from '../../support/deltas.ts';
import { lockedPackage } from '../../support/described.ts';
import { unless } from '../../support/needs.ts';
import { writePackage } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { cannotRun, ROOT, run } from '../support/programs.ts';
import { assertSays } from '../support/proof.ts';

const test = suite('components/proof/cyclonedx', { timeoutMs: 120_000 });
const LIBRARY = join(ROOT, '.curlew/tools/cyclonedx');
const PYTHON = join(LIBRARY, 'python');

async function check(...files: readonly string[]): Promise<readonly string[]> {
  const program = join(ROOT, 'test/oracles/strict-sbom.py');
  const env = { PYTHONPATH: LIBRARY, PYTHONDONTWRITEBYTECODE: '1' };
  return (await run(PYTHON, [program, ...files], { env })).split('\n');
}

const checked = unless(cannotRun(PYTHON), test);

checked('SBOMs of packages with everything and with nothing, and of a bundle, are valid', async () => {
  await using box = await tree();
  const full = lockedPackage();
  const lock = formatLock({ format: 1, images: [], assets: [], hostPackages: [], containerBuilds: [] });
  const plain = { name: 'plain', version: '1.0.0', files: [{ path: 'Manifest.lock', data: lock }] };
  for (const { name, version, files, extra } of [full, { ...plain, extra: {} }]) {
    await writePackage(box.at(`${name}.tar.gz`), name, version, files, extra);
  }
  const { bytes } = await bundleOfPackages([full, plain]);
  await writeFile(box.at('bundle.tar.gz'), bytes);
  await curlewOk(['sbom', 'web.tar.gz', 'plain.tar.gz', 'bundle.tar.gz', '--beside'], { cwd: box.path });
  const answers = await check(...['web', 'plain', 'bundle'].map((name) => box.at(`${name}.tar.gz.cdx.json`)));
  const valid = answers.filter((answer) => answer === 'valid').length;
  assertSays('cyclonedx', `${valid} of ${answers.length} valid`, answers.join('\n'));
});

checked('a field that the specification does not have is found', async () => {
  await using box = await tree({
    'a.json': '{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"components":[]}',
    'b.json': '{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"components":[],"more":1}',
  });
  const [first, second = ''] = await check(box.at('a.json'), box.at('b.json'));
  assert.is(first, 'valid');
  assert.match(second, "'more' was unexpected");
});

test.run();
