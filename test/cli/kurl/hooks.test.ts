/** A hook calls a program of kURL's below bin/, and this tool answers. */
import { readFile, stat } from 'node:fs/promises';
import { shellQuote } from '../../../src/core/shell-word.ts';
import * as assert from '../../support/assert.ts';
import { MAIN } from '../../support/compiled.ts';
import { hooks } from '../../support/hook-shell.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/kurl, from hooks', { timeoutMs: 60_000 });

test('yamlutil, htpasswd and bcrypt, found by their usual paths', async () => {
  const words = [process.execPath, MAIN].map(shellQuote).join(' ');
  const script = `demo() {
    printf 'a: 1\\n' >file.yaml
    "$DIR"/bin/yamlutil -a -fp file.yaml -yp 'data_app-version-label' -v 'two words'
    "$BIN_HTPASSWD" -u user -p 'pass $word' -f users
    address="$("$BIN_KURL" format-address ::1)"
    hash="$(echo secret | $DIR/bin/bcrypt --cost=4)"
    printf '%s\\n' "$address" "$hash" >said
    interface="$("$BIN_KURL" netutil iface-from-ip 127.0.0.1)"
    [ "$(cat "/sys/class/net/$interface/ifindex")" = 1 ]
    ! "$BIN_KURL" rook hostpath-to-block 2>error
    printf 'apiVersion: cluster.kurl.sh/v1beta1\\nkind: Installer\\nspec: {ekco: {version: latest}}\\n' >spec.yaml
    "$BIN_BASHMERGE" -c spec.yaml -f "ha ekco-enable-internal-load-balancer"
    "$BIN_YAMLTOBASH" -i spec.yaml -b vars
    source ./vars
    echo "$EKCO_VERSION $HA_CLUSTER $EKCO_ENABLE_INTERNAL_LOAD_BALANCER" >>said
    ! "$BIN_DOCKER_CONFIG" -m 2>>error
  }`;
  await using box = await hooks([script], { env: { BIN_CURLEW: words } });
  await box.run('demo');
  assert.is(await readFile(box.at('file.yaml'), 'utf8'), 'a: 1\ndata:\n  app-version-label: two words\n');
  assert.match(await readFile(box.at('users'), 'utf8'), /^user:\$2/);
  assert.match(await readFile(box.at('said'), 'utf8'), /^\[::1\]\n\$2[aby]\$04\$.*\nlatest 1 1\n$/);
  assert.match(
    await readFile(box.at('error'), 'utf8'),
    /kurl rook hostpath-to-block: not supported.*docker-config: not supported; put kURL's own program into bin of the install folder/s,
  );
  assert.is((await stat(box.at('bin/kurl'))).mode & 0o777, 0o755);
});

test('without the way back there is no program, and no failure', async () => {
  await using box = await hooks(['demo() { [ ! -e bin ]; }']);
  await box.run('demo');
});

test.run();
