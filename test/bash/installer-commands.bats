#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "case 19: get_kurl_install_directory_flag" {
  [ "$(get_kurl_install_directory_flag /var/lib/kurl)" = '' ]
  [ "$(get_kurl_install_directory_flag '')" = '' ]
  [ "$(get_kurl_install_directory_flag .)" = ' kurl-install-directory=.' ]
}

@test "build_installer_prefix" {
  [ "$(build_installer_prefix id v1 '' '' ''; echo .)" = $'cat \n.' ]
  [ "$(build_installer_prefix id '' https://kurl.sh '' '')" = 'curl -fsSL https://kurl.sh/id/' ]
  [ "$(build_installer_prefix id v1 https://kurl.sh '' '')" = 'curl -fsSL https://kurl.sh/version/v1/id/' ]
  [ "$(build_installer_prefix id v1 http://kurl.sh http://p:1 http://s:2)" = \
    'curl -fsSL -x http://p:1 http://kurl.sh/version/v1/id/' ]
  [ "$(build_installer_prefix id '' https://kurl.sh http://p:1 http://s:2)" = 'curl -fsSL -x http://s:2 https://kurl.sh/id/' ]
}

@test "insertOrReplaceJsonParam makes, replaces and adds" {
  insertOrReplaceJsonParam d/new.json name value
  [ "$(cat d/new.json)" = '{"name": "value"}' ]
  insertOrReplaceJsonParam d/new.json name other
  [ "$(cat d/new.json)" = '{"name": "other"}' ]
  insertOrReplaceJsonParam d/new.json second 'a/b&c\d'
  [ "$(cat d/new.json)" = '{"second": "a/b&c\d", "name": "other"}' ]
  echo '{}' >empty.json
  insertOrReplaceJsonParam empty.json name value
  [ "$(cat empty.json)" = '{"name": "value"}' ]
}
