(** y'y under replace-one: free as long as the worst pair, which leaves it where it is, stays the
    worst. *)

Require Import Reals Lra Psatz.
From Tacit Require Import Formulas Optimum.
Local Open Scope R_scope.

Lemma free_up_to (X Y response weight : R) :
  0 < X -> 0 < Y -> Rsqr (response * Y / X) <= 2 ->
  let with_weight v :=
    sensitivity_squared reals ReplaceOne 1 X Y (Build_weights reals response v 0 0) in
  Rsqr weight <= free_square_weight_squared reals X Y response <->
    with_weight weight = with_weight 0.
Proof.
  intros radius bound low with_weight. unfold with_weight, sensitivity_squared, rows_squared, lever.
  cbn [at_most whole reals].
  destruct (Rle_dec 1 1) as [_ | never]; [| exfalso; lra].
  cbn [w v c e plus times over whole reals].
  set (W := response * Y / X) in *. unfold Rsqr in low.
  unfold diameter. cbn [at_most times whole reals]. destruct (Rle_dec (W * W) 2) as [_ | never];
    [| exfalso; lra].
  set (V := weight * (Y * Y) / (X * X)).
  assert (0 * (Y * Y) / (X * X) = 0) as -> by (field; lra).
  assert (larger reals (opposite reals W) (one_zero reals W 0) = opposite reals W) as ->.
  { unfold larger. cbn [at_most reals]. destruct Rle_dec as [under | over]; [| reflexivity].
    apply Rle_antisym; [| exact under]. unfold opposite, one_zero. cbn. nra. }
  assert (0 < square reals (X * X)) as positive.
  { unfold square. cbn. assert (0 < X * X) by nra. nra. }
  assert (Rsqr weight <= free_square_weight_squared reals X Y response <->
    one_zero reals W V <= opposite reals W) as ->.
  { unfold free_square_weight_squared, one_zero, opposite,
      square. cbn [plus times over whole reals]. fold W.
    assert (V * V = Rsqr weight * (Y / X * (Y / X) * (Y / X * (Y / X)))) as scaled
      by (unfold V, Rsqr; field; lra).
    set (z := Y / X * (Y / X) * (Y / X * (Y / X))) in *.
    assert (0 < Y / X) by (apply Rmult_lt_0_compat; [lra | now apply Rinv_0_lt_compat]).
    assert (0 < Y / X * (Y / X)) by now apply Rmult_lt_0_compat.
    assert (0 < z) by now apply Rmult_lt_0_compat.
    assert (X / Y * (X / Y) * (X / Y * (X / Y)) = / z) as -> by (unfold z; field; lra).
    assert (forall a b, a <= / z * b <-> a * z <= b) as clear.
    { intros a b. split; intros under.
      - apply Rmult_le_reg_r with (/ z); [now apply Rinv_0_lt_compat |].
        rewrite Rmult_assoc, Rinv_r by lra. lra.
      - apply Rmult_le_reg_r with z; [lra |]. replace (/ z * b * z) with b by (field; lra). lra. }
    rewrite clear, scaled. split; lra. }
  unfold larger. cbn [at_most reals]. destruct Rle_dec as [under | over]; split; intros.
  - rewrite (Rle_antisym _ _ under) by assumption. reflexivity.
  - assert (square reals (X * X) * one_zero reals W V
      = square reals (X * X) * opposite reals W :> R) as same by lra.
    apply Rmult_eq_reg_l in same; lra.
  - reflexivity.
  - lra.
Qed.
