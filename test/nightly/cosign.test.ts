/** Signatures beside real cosign, in a namespace without a network: what either signs, the other verifies. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { publishTestPackages } from '../support/bundles.ts';
import { curlewOk } from '../support/curlew.ts';
import { lockedPackage } from '../support/described.ts';
import { bundleWithScript, exchangeScript } from '../support/exchanged.ts';
import { boxWith, specOf } from '../support/node-bundles.ts';
import { traced, tracer, tracerPackage } from '../support/node-install.ts';
import { writePackage } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { cannotRun, oracle, ROOT, shell } from '../components/support/programs.ts';

const test = suite('signatures of and for cosign', { timeoutMs: 180_000 });
const COSIGN = oracle('cosign');

/** Runs cosign in the box; `$1` of the line is its program. */
async function cosign(box: Tree, line: string): Promise<string> {
  const alone = `cd "$2" && HOME="$2" COSIGN_PASSWORD=hush unshare --net bash -euo pipefail -c '${line}' bash "$1" 2>&1`;
  return shell(alone, COSIGN, box.path);
}

async function boxWithBundle(): Promise<Tree> {
  const box = await boxWith([tracer('aaa')]);
  await shell('tar -xOf "$1" stargz.index.json >"$2"', box.at('b.tar.gz'), box.at('contents.json'));
  return box;
}

const reason = cannotRun(COSIGN, 'unshare');
if (reason === undefined) {
  test('cosign verifies what curlew has signed as the page says, and refuses an exchanged install.sh', async () => {
    await using box = await tree({ 'bundle.tar.gz': bundleWithScript() });
    await curlewOk(['keygen', 'release'], traced(box));
    await curlewOk(['sign', 'bundle.tar.gz', '--key', 'release.key'], traced(box));
    const page = await readFile(join(ROOT, 'docs/signing.md'), 'utf8');
    const typed = /^cosign (verify-blob-attestation .*) bundle\.tar\.gz$/m.exec(page)?.[1];
    const verify = `"$1" ${typed} bundle.tar.gz`;
    assert.match(await cosign(box, verify), 'Verified OK');
    const elsewhere = `"$1" ${typed?.replace('archive', 'release')} bundle.tar.gz`;
    assert.match(await cosign(box, `${elsewhere} && exit 1 || echo refused`), /refused$/);
    await writeFile(box.at('bundle.tar.gz'), await exchangeScript(await readFile(box.at('bundle.tar.gz'))));
    assert.match(await cosign(box, `${verify} && exit 1 || echo refused`), /refused$/);
  });

  test('curlew installs by a signature that cosign has made with its own keys', async () => {
    await using box = await boxWithBundle();
    const sign =
      '"$1" generate-key-pair && "$1" sign-blob --yes --key cosign.key --bundle b.tar.gz.sigstore.json --tlog-upload=false --use-signing-config=false contents.json';
    await cosign(box, sign);
    assert.match(
      await curlewOk(['verify', 'b.tar.gz', '--key', 'cosign.pub'], traced(box)),
      /^signed with .*cosign\.pub$/m,
    );
    await mkdir(box.at('root'));
    const words = ['install', '--root', 'root', '--unconfined', '--bundle', 'b.tar.gz', '--key', 'cosign.pub'];
    assert.match(await curlewOk(words, traced(box)), /^aaa {2}1\.0\.0 {2}installed/);
  });

  test('a private key of curlew is taken by cosign', async () => {
    await using box = await boxWithBundle();
    await curlewOk(['keygen', 'our'], traced(box));
    const sign =
      '"$1" import-key-pair --key our.key && "$1" sign-blob --yes --key import-cosign.key --bundle b.tar.gz.sigstore.json --tlog-upload=false --use-signing-config=false contents.json';
    await cosign(box, sign);
    assert.match(await curlewOk(['verify', 'b.tar.gz', '--key', 'our.pub'], traced(box)), /^signed with /m);
  });

  test('cosign verifies which release of a store is the current one, and refuses another catalog', async ({
    signal,
  }) => {
    await using box = await tree();
    await publishTestPackages(box, [{ name: 'aaa', version: '1.0.0', files: [] }], signal);
    await curlewOk(['keygen', 'our'], traced(box));
    await curlewOk(['sign', '--store', 'store', '--release', 'r1', '--key', 'our.key'], traced(box));
    for (const signature of ['VERSION.sigstore.json', 'r1/index.json.sigstore.json']) {
      const verify = `"$1" verify-blob-attestation --key our.pub --bundle store/${signature} --insecure-ignore-tlog --type urn:curlew:release:v1`;
      assert.match(await cosign(box, `${verify} store/r1/index.json`), 'Verified OK');
      assert.match(await cosign(box, `${verify} store/VERSION && exit 1 || echo refused`), /refused$/);
    }
  });

  test('cosign verifies the provenance of a package, of its file and of its contents, and refuses another', async () => {
    await using box = await tree();
    const { name, version, files, extra } = lockedPackage();
    await writePackage(box.at('web.tar.gz'), name, version, files, extra);
    await shell('tar -xOf "$1" stargz.index.json >"$2"', box.at('web.tar.gz'), box.at('contents.json'));
    await writeFile(box.at('other'), 'other');
    await curlewOk(['keygen', 'our'], traced(box));
    await curlewOk(['provenance', 'web.tar.gz', '--sign', 'our.key'], traced(box));
    const words = '--key our.pub --bundle web.tar.gz.provenance.sigstore.json --insecure-ignore-tlog';
    const verify = `"$1" verify-blob-attestation ${words} --type slsaprovenance1`;
    assert.match(await cosign(box, `${verify} web.tar.gz`), 'Verified OK');
    assert.match(await cosign(box, `${verify} contents.json`), 'Verified OK');
    assert.match(await cosign(box, `${verify} other && exit 1 || echo refused`), /refused$/);
  });

  test('a signed store is installed from without a network', async ({ signal }) => {
    await using box = await tree({ 'spec.yaml': specOf([{ name: 'aaa', version: 'latest' }]) });
    await publishTestPackages(box, [tracerPackage('aaa')], signal);
    await curlewOk(['keygen', 'our'], traced(box));
    const alone = async (words: string): Promise<string> =>
      shell(
        `cd "$1" && unshare --net env TRACE="$1/trace" XDG_STATE_HOME="$1" "$2" "$3" ${words} 2>&1`,
        box.path,
        process.execPath,
        MAIN,
      );
    assert.match(await alone('sign --store store --release r1 --key our.key'), /r1 is signed as version/);
    const words = 'install --root root --unconfined --installer spec.yaml --from store --key our.pub';
    assert.match(await alone(words), /^aaa {2}1\.0\.0 {2}installed/m);
  });
} else {
  test.skip('with cosign', reason);
}

test.run();
