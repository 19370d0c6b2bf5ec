"""Fetching packages that were chosen, and checking that they are what their repository says."""
import hashlib
import os
import re
import shutil
import subprocess

import dnf.callback
import dnf.exceptions
import hawkey
from problem import ENV, OUT, Problem, address, one_line

# A package's file in the repository may have any name; one that is taken over must be plain.
FILE = re.compile(r'[A-Za-z0-9][A-Za-z0-9._+~^-]*\.rpm')


def file_of(package):
    """The package's path in the output, under the name that it has in its repository."""
    name = os.path.basename(package.location)
    if not FILE.fullmatch(name):
        raise Problem(('repository', address(package.repo), 'a package file has a name that is refused: %r' % name))
    return os.path.join(OUT, name)


def digest_of(kind, path):
    digest = hashlib.new(kind)
    with open(path, 'rb') as file:
        for block in iter(lambda: file.read(1 << 20), b''):
            digest.update(block)
    return digest.hexdigest()


def is_that(package, path):
    """True when the file is what the repository's metadata say."""
    kind, digest = package.chksum
    return os.path.getsize(path) == package.downloadsize and digest_of(hawkey.chksum_name(kind), path) == digest.hex()


def take_known(package):
    """Copies the file of an earlier build when it is what the repository has."""
    folder = ENV.get('CURLEW_KNOWN')
    if not folder:
        return False
    known = os.path.join(folder, os.path.basename(file_of(package)))
    if os.path.islink(known) or not os.path.isfile(known) or not is_that(package, known):
        return False
    shutil.copyfile(known, file_of(package))
    return True


class Progress(dnf.callback.DownloadProgress):
    """Shows what has come, and keeps what went wrong: the exceptions leave that out."""

    def __init__(self):
        self.reasons = []

    def start(self, total_files, total_size, total_drpms=0):
        pass

    def progress(self, payload, done):
        pass

    def end(self, payload, status, msg):
        reason = '%s: %s' % (payload, one_line(msg))
        if msg and reason not in self.reasons:
            self.reasons.append(reason)
        elif not msg:
            print('fetched %s' % payload, flush=True)


def fetch(base, packages):
    """Puts the packages into the output, checked against metadata and keys; the bytes that were not known before."""
    places = [file_of(package) for package in packages]
    if len(set(places)) < len(places):
        raise Problem(('repository', '-', 'two different packages have one file name'))
    wanted = [package for package in packages if not take_known(package)]
    size = sum(package.downloadsize for package in wanted)
    print('%d packages, %d of them to fetch, %d bytes' % (len(packages), len(wanted), size), flush=True)
    progress = Progress()
    try:
        base.download_packages(wanted, progress)
    except dnf.exceptions.Error as error:
        raise download_problem(wanted, '; '.join(progress.reasons[:3]) or one_line(error))
    imported = set()
    for package in packages:
        if not is_that(package, file_of(package)):
            raise Problem(('changed', address(package.repo), '%s is not what the metadata say' % package))
        check_signature(base, package, imported)
    return size


def download_problem(wanted, text):
    if re.search(r'No space left|Curl error \(23\)|Disk quota', text):
        return Problem(('full', OUT))
    kind = 'changed' if re.search(r'checksum|Status code: 404', text) else 'repository'
    places = {address(package.repo) for package in wanted}
    guilty = [place for place in places if place in text] or sorted(places)
    return Problem((kind, guilty[0], text[:600]))


def check_signature(base, package, imported):
    """Checks the package's signature where its repository asks for that; its keys come from where it says."""
    status, text = base.package_signature_check(package)
    if status == 1 and package.repoid not in imported:
        imported.add(package.repoid)
        import_keys(base, package.repo)
        status, text = base.package_signature_check(package)
    if status != 0:
        raise Problem(('signature', address(package.repo), one_line(text)))


def import_keys(base, repo):
    # dnf would do it with gpg, which leaves an agent running.
    for url in repo.gpgkey:
        try:
            with base.urlopen(url, repo) as source:
                subprocess.run(['rpmkeys', '--root', base.conf.installroot, '--import', source.name], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Problem(('signature', address(repo), 'its key %s: %s' % (url, one_line(error))))
