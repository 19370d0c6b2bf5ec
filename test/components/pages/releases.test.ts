/** The blocks of docs/releases.md, over a folder, buckets and web servers. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { S3_ENVIRONMENT, S3_PROGRAM, startBuckets, startWeb, WEB_PROGRAM } from '../support/page-servers.ts';

const test = suite('components/pages/releases', { timeoutMs: 300_000 });
const ACME = Object.entries(plainAddons('acme@2.0.0')).map(([path, content]) => [`acme/${path}`, content]);
const ROW = {
  version: '2.0.0',
  url: 'https://acme.example/acme-2.0.0.tar.gz',
  kurlVersionCompatibilityRange: '>=v2026.11.1-0',
};

unless(noPageMachine(S3_PROGRAM, WEB_PROGRAM), test)(
  'releases are promoted, extended, pruned and installed',
  async () => {
    await using machine = await pageMachine('docs/releases.md', {
      files: {
        ...plainAddons('web@1.0.0'),
        ...Object.fromEntries(ACME),
        'installer.yaml': installerSpec('web: { version: latest }', 'acme: { version: latest }'),
        'versions.json': JSON.stringify([ROW]),
      },
      hosts: ['packages.example.com', 'acme.example'],
      env: S3_ENVIRONMENT,
    });
    await startBuckets(machine, ['bucket', 'mirror']);
    await machine.run(`curlew publish --to /srv/staging --release v2026.11.20-0
for number in {01..12}; do curlew publish --to s3://bucket/staging --release v2026.10.$number-0; done
(cd acme && curlew build) && mkdir /srv/acme && cp acme/out/acme-2.0.0.tar.gz /srv/acme`);
    await startWeb(machine, { 'packages.example.com': '/srv', 'acme.example': '/srv/acme' });

    assert.is((await machine.block('curlew promote')).match(/^web 1\.0\.0: copied by the store, /gm)?.length, 2);
    await machine.run(`cmp /srv/staging/v2026.11.20-0/web-1.0.0.tar.gz /srv/dist/v2026.11.20-0/web-1.0.0.tar.gz
test "$(</srv/dist/VERSION)" = v2026.11.20-0
test "$(</var/s3/data/bucket/dist/VERSION)" = v2026.11.21-0
if curlew promote --from /srv/dist --to s3://mirror/dist; then exit 1; fi
curlew promote --from /srv/dist --to s3://mirror/dist --stream`);

    await machine.block('curlew import-external');
    assert.match(await machine.run('curlew versions --from /srv/dist'), /^acme: 2\.0\.0\nweb: 1\.0\.0\n/);

    await machine.run(`cd /var/s3/data/bucket/staging
sed -i 's/\\("published": *"\\)[^"]*/\\1'"$(date --utc --date '31 days ago' +%FT%T.000Z)"/ v2026.10.{01..11}-0/index.json
touch -d "31 days ago" v2026.10.{01..11}-0/index.json`);
    const pruned = await machine.block('curlew prune');
    for (const release of ['v2026.10.01-0', 'v2026.10.02-0']) assert.match(pruned, `${release}: would be removed, `);
    const kept = (await machine.run('cd /var/s3/data/bucket/staging && echo v*')).split(' ');
    assert.equal([kept.length, kept[0], kept.at(-1)], [10, 'v2026.10.03-0', 'v2026.10.12-0']);

    assert.match(await machine.block('curlew install'), /^web +1\.0\.0 {2}already applied /m);
    await machine.run('test -s /etc/web.txt && test -s /etc/acme.txt && test ! -e /var/lib/curlew/fetched');
    const fallback = await machine.run(`rm /srv/dist/v2026.11.20-0/web-1.0.0.tar.gz
curlew install --from https://packages.example.com/dist --from s3://mirror/dist --install-dir /root/again \
  --installer installer.yaml`);
    assert.match(fallback, /^fetch web-1\.0\.0: fetched$/m);
    assert.equal(machine.left(), []);
  },
);

test.run();
